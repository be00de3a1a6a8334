#include "config.h"

#include "common/base/charset.h"
#include "common/base/mem.h"
#include "common/base/utf8.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/archive/archive_privsep.h"
#include "common/sandbox/archive/backup.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BLOCK       65536
#define FILTERS_MAX 2 /* one and "none": nothing is compressed twice in good faith */

struct reading {
    struct archive *a;
    int out_fd;
    uint64_t left; /* bytes of content that may still be handed on */
    bool lenient;  /* links are left out, names that are not UTF-8 are repaired */
    bool repaired; /* name holds that of the entry */
    struct buf name;
    char block[BLOCK];
};

/* Says why nothing comes of it; always -1. */
__attribute__((format(printf, 2, 3))) static int refuse(const struct reading *r, const char *fmt,
                                                        ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    archive_record_write(r->out_fd, ARCHIVE_REFUSED, text, len);
    return -1;
}

static int refuse_broken(const struct reading *r)
{
    const char *why = archive_error_string(r->a);

    return refuse(r, "the archive cannot be read (is it a tar or zip file, whole?): %s",
                  why ? why : "it ends early");
}

/* What this build of the library does by calling other programs is not among them. */
static const struct {
    int (*support)(struct archive *a);
} kinds[] = {
    {archive_read_support_format_tar},  {archive_read_support_format_zip_seekable},
    {archive_read_support_filter_gzip}, {archive_read_support_filter_bzip2},
    {archive_read_support_filter_xz},   {archive_read_support_filter_zstd},
};

static int open_archive(struct reading *r, int archive_fd)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].support(r->a) != ARCHIVE_OK)
            return refuse(r, "this server cannot read archives");
    if (archive_read_open_fd(r->a, archive_fd, BLOCK) != ARCHIVE_OK)
        return refuse_broken(r);
    return 0;
}

/* What an entry is that no sandbox gets; NULL when it may come. */
static const char *kind_of(struct archive_entry *entry)
{
    if (archive_entry_hardlink(entry))
        return "is a hard link";
    switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
    case AE_IFDIR:
        return NULL;
    case AE_IFLNK:
        return "is a symbolic link";
    default:
        return "is a device, a FIFO or a socket";
    }
}

/* As raw bytes when they are no text: who gets them looks at them anyway. */
static const char *name_of(struct archive_entry *entry)
{
    const char *name = archive_entry_pathname_utf8(entry);

    if (!name)
        name = archive_entry_pathname(entry);
    return name ? name : "";
}

/* Systems without UTF-8 write names as they have them, and do not say how. */
static const char *repaired(struct reading *r, const char *name)
{
    const char *charset = r->lenient && !utf8_valid(name, strlen(name))
                              ? charset_of_name(name, strlen(name))
                              : NULL;

    buf_reset(&r->name);
    r->repaired = charset &&
                  charset_decode(charset, name, strlen(name), &r->name) == strlen(name) &&
                  buf_ok(&r->name) && r->name.len > 0;
    return r->repaired ? buf_str(&r->name) : name;
}

static int leave_out(const struct reading *r, const char *name, const char *what)
{
    char text[512];
    int len = snprintf(text, sizeof text, "'%.*s' %s", (int)utf8_cut(name, strlen(name), 300), name,
                       what);

    return archive_record_write(r->out_fd, ARCHIVE_LEFT_OUT, text, (size_t)len);
}

static int hand_piece(struct reading *r, size_t n)
{
    if (n > r->left)
        return refuse(r, "the archive's content is too large");
    r->left -= n;
    return archive_record_write(r->out_fd, ARCHIVE_BYTES, r->block, n);
}

/* A sparse file may end in a hole, of which the library says nothing. */
static int hand_zeros(struct reading *r, uint64_t count)
{
    memset(r->block, 0, sizeof(r->block));
    for (uint64_t n; count > 0; count -= n) {
        n = count < sizeof(r->block) ? count : sizeof(r->block);
        if (hand_piece(r, (size_t)n) < 0)
            return -1;
    }
    return 0;
}

static int hand_content(struct reading *r, struct archive_entry *entry)
{
    uint64_t size = archive_entry_size_is_set(entry) ? (uint64_t)archive_entry_size(entry) : 0;
    uint64_t handed = 0;

    for (;;) {
        la_ssize_t n = archive_read_data(r->a, r->block, sizeof(r->block));
        if (n < 0)
            return refuse_broken(r);
        if (n == 0)
            return size > handed ? hand_zeros(r, size - handed) : 0;
        if (hand_piece(r, (size_t)n) < 0)
            return -1;
        handed += (uint64_t)n;
    }
}

static int hand_attributes(const struct reading *r, struct archive_entry *entry)
{
    const time_t mtime = archive_entry_mtime_is_set(entry) ? archive_entry_mtime(entry) : 0;
    char text[64];
    int len = snprintf(text, sizeof(text), "%04o %lld", archive_entry_perm(entry) & 0777,
                       mtime > 0 ? (long long)mtime : 0);

    return archive_record_write(r->out_fd, ARCHIVE_ATTRIBUTES, text, (size_t)len);
}

static int hand_entry(struct reading *r, struct archive_entry *entry)
{
    const char *kind = kind_of(entry), *name = repaired(r, name_of(entry));
    size_t len = strlen(name);
    bool folder = archive_entry_filetype(entry) == AE_IFDIR;

    if (archive_filter_count(r->a) > FILTERS_MAX)
        return refuse(r, "the archive is compressed more than once");
    if (kind && r->lenient)
        return leave_out(r, name, kind);
    if (kind || archive_entry_is_encrypted(entry))
        return refuse(r, "'%.300s' in the archive %s; only files and folders are unpacked", name,
                      kind ? kind : "is encrypted");
    if (len == 0 || len > ARCHIVE_RECORD_MAX)
        return refuse(r, "a name in the archive is empty or too long");
    if ((r->repaired && archive_record_write(r->out_fd, ARCHIVE_REPAIRED, NULL, 0) < 0) ||
        hand_attributes(r, entry) < 0 ||
        archive_record_write(r->out_fd, folder ? ARCHIVE_FOLDER : ARCHIVE_FILE, name, len) < 0)
        return -1;
    return folder ? 0 : hand_content(r, entry);
}

static int hand_all(struct reading *r, int archive_fd)
{
    struct archive_entry *entry;

    if (open_archive(r, archive_fd) < 0)
        return -1;
    for (;;) {
        int rc = archive_read_next_header(r->a, &entry);
        if (rc == ARCHIVE_EOF)
            return 0;
        /* A warning is about a name or a time that could not be translated. */
        if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
            return refuse_broken(r);
        if (hand_entry(r, entry) < 0)
            return -1;
    }
}

void unpack_read(int archive_fd, int out_fd, uint64_t max_bytes, bool lenient)
{
    struct reading *r = mem_alloc(sizeof(*r));

    *r = (struct reading){.a = archive_read_new(),
                          .out_fd = out_fd,
                          .left = max_bytes,
                          .lenient = lenient,
                          .name = BUF_INIT(ARCHIVE_RECORD_MAX)};
    if (r->a && hand_all(r, archive_fd) == 0)
        archive_record_write(out_fd, ARCHIVE_END, NULL, 0);
    archive_read_free(r->a);
    buf_clear(&r->name);
    free(r);
}

static int reader_main(bool of_sandbox)
{
    /* For the library, which translates names to it; afterwards no file can be opened. */
    setlocale(LC_CTYPE, "C.UTF-8");
    if (of_sandbox)
        charset_prepare();
    if (archive_privsep_enter(of_sandbox) < 0)
        return 1;
    /* What it may hand on is counted by who reads it. */
    unpack_read(STDIN_FILENO, STDOUT_FILENO, UINT64_MAX, of_sandbox);
    return 0;
}

int unpack_reader_main(void)
{
    return reader_main(true);
}

int backup_reader_main(void)
{
    return reader_main(false);
}
