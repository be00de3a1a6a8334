#include "config.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/utf8.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/snapshot.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 65536

static const char *const format_names[] = {
    [PACK_TAR_GZ] = "tar.gz", [PACK_ZIP] = "zip", [PACK_TAR] = "tar"};

const char *pack_format_name(enum pack_format format)
{
    return format_names[format];
}

int pack_format_parse(const char *name, enum pack_format *out)
{
    for (size_t i = 0; i < ARRAY_LEN(format_names); i++) {
        if (strcmp(name, format_names[i]) == 0) {
            *out = (enum pack_format)i;
            return 0;
        }
    }
    return -1;
}

/* ---- what is to be packed ---- */

struct source {
    struct sandbox at;  /* the folder, as if it were a sandbox: names are relative to it */
    const char *prefix; /* what stands in front of them in the archive; "" or the folder */
    struct snapshot listing;
};

static void source_clear(struct source *s)
{
    snapshot_clear(&s->listing);
    sandbox_close(&s->at);
}

static int open_folder(const struct sandbox *sb, const char *folder, struct err *e)
{
    int fd = *folder ? beneath_open(sb->fd, folder, O_RDONLY | O_DIRECTORY | O_NONBLOCK)
                     : fcntl(sb->fd, F_DUPFD_CLOEXEC, 3);

    if (fd < 0 && beneath_system_failed(errno))
        return err_errno(e, "the folder cannot be opened");
    return fd < 0 ? err_set(e, ERR_NOT_FOUND, "there is no such folder") : fd;
}

static int source_open(const struct sandbox *sb, const char *folder, struct source *out,
                       struct pack_sum *sum, struct err *e)
{
    struct snapshot *listing = &out->listing;

    out->at = (struct sandbox){.root = sb->root, .fd = open_folder(sb, folder ? folder : "", e)};
    out->prefix = folder ? folder : "";
    if (out->at.fd < 0 ||
        (folder && !*folder ? snapshot_take_all : snapshot_take_folder)(&out->at, listing, e) < 0)
        return -1;
    *sum = (struct pack_sum){.files = listing->n};
    for (size_t i = 0; i < listing->n; i++)
        if (__builtin_add_overflow(sum->bytes, listing->items[i].size, &sum->bytes))
            sum->bytes = UINT64_MAX;
    if (listing->cut || listing->n >= ARCHIVE_FILES_MAX)
        return err_set(e, ERR_LIMIT,
                       "an archive holds at most %d files, not more than %d folders deep; there "
                       "are more: name a folder",
                       ARCHIVE_FILES_MAX - 1, FILES_DEPTH_MAX - 1);
    if (sum->bytes > PACK_BYTES_MAX)
        return err_set(e, ERR_LIMIT,
                       "the files have %" PRIu64 " bytes; an archive holds at most %llu",
                       sum->bytes, PACK_BYTES_MAX);
    if (listing->n == 0)
        return err_set(e, ERR_NOT_FOUND, "there are no files to pack");
    return 0;
}

int pack_look(const struct sandbox *sb, const char *folder, struct pack_sum *out, struct err *e)
{
    struct source source __attribute__((cleanup(source_clear))) = {.at = SANDBOX_INIT};

    return source_open(sb, folder, &source, out, e);
}

/* ---- packing ---- */

struct packing {
    struct archive *a;
    struct archive_entry *entry;
    const struct source *source;
    enum pack_format format;
    const struct pack_sink *sink;
    struct deadline end;
    struct pack_sum done;
    char block[BLOCK];
};

static int pack_error(struct packing *p, struct err *e)
{
    const char *why = archive_error_string(p->a);

    if (archive_errno(p->a) == ETIMEDOUT)
        return err_set(e, ERR_TIMEOUT, "the archive's reader is too slow");
    if (archive_errno(p->a) == EPIPE)
        return err_set(e, ERR_CANCELLED, "the reader of the archive has closed its end");
    return err_set(e, ERR_IO, "the archive cannot be written: %s", why ? why : "unknown");
}

/*
 * A name is any bytes: zip promises UTF-8, tar keeps what is. Neither may hold what another system
 * would read as a path that is not here.
 */
static char *name_for(const struct packing *p, const char *name)
{
    const char *prefix = p->source->prefix;
    AUTO_BUF struct buf out = BUF_INIT(4 * FILES_NAME_MAX);
    AUTO_FREE char *full = mem_printf("%s%s%s", prefix, *prefix ? "/" : "", name);

    if (p->format == PACK_ZIP)
        utf8_repair(full, strlen(full), &out);
    else
        buf_add_str(&out, full);
    char *clean = buf_take(&out);
    if (((clean[0] | 0x20) >= 'a' && (clean[0] | 0x20) <= 'z') && clean[1] == ':')
        clean[1] = '_';
    for (char *at = clean; (at = strchr(at, '\\')); at++)
        *at = '_';
    return clean;
}

static int begin_entry(struct packing *p, const char *name, const struct stat *st, struct err *e)
{
    AUTO_FREE char *full = name_for(p, name);

    archive_entry_clear(p->entry);
    archive_entry_copy_pathname(p->entry, full);
    archive_entry_set_filetype(p->entry, AE_IFREG);
    archive_entry_set_perm(p->entry, 0644);
    archive_entry_set_uid(p->entry, 0);
    archive_entry_set_gid(p->entry, 0);
    archive_entry_set_size(p->entry, st->st_size);
    archive_entry_set_mtime(p->entry, st->st_mtim.tv_sec, 0);
    int rc = archive_write_header(p->a, p->entry);
    return rc == ARCHIVE_OK || rc == ARCHIVE_WARN ? 0 : pack_error(p, e);
}

/* The next piece of at most want bytes; zeros when the file has no more. */
static size_t next_piece(struct packing *p, int fd, size_t want)
{
    ssize_t n;

    do
        n = read(fd, p->block, want);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        return (size_t)n;
    memset(p->block, 0, want);
    return want;
}

static int pack_file(struct packing *p, const char *name, struct err *e)
{
    struct err gone = ERR_INIT;
    struct stat st;
    AUTO_FD int fd = files_open(&p->source->at, name, &st, &gone);

    if (fd < 0 && gone.kind == ERR_NOT_FOUND)
        return 0;
    if (fd < 0) {
        *e = gone;
        return -1;
    }
    if ((uint64_t)st.st_size > PACK_BYTES_MAX - p->done.bytes)
        return err_set(e, ERR_LIMIT, "the files grew beyond what an archive holds");
    if (begin_entry(p, name, &st, e) < 0)
        return -1;
    for (uint64_t left = (uint64_t)st.st_size; left > 0;) {
        size_t n = next_piece(p, fd, left < BLOCK ? (size_t)left : BLOCK);
        if (archive_write_data(p->a, p->block, n) != (la_ssize_t)n)
            return pack_error(p, e);
        left -= n;
    }
    p->done.files++;
    p->done.bytes += (uint64_t)st.st_size;
    return archive_write_finish_entry(p->a) == ARCHIVE_OK ? 0 : pack_error(p, e);
}

/* The time by which the reader must have taken something. */
static struct deadline next_end(const struct packing *p)
{
    int64_t stall_ms = p->sink->stall_ms;

    return deadline_min(p->end, stall_ms ? deadline_in_ms(stall_ms) : DEADLINE_NEVER);
}

/* The library's write callback: what was written, or -1 with its error set. */
static la_ssize_t put_out(struct archive *a, void *ctx, const void *data, size_t len)
{
    const struct packing *p = ctx;
    struct pollfd ready = {.fd = p->sink->fd, .events = POLLOUT};
    struct deadline end = next_end(p);
    ssize_t n = -1;

    while (!deadline_passed(end)) {
        n = write(ready.fd, data, len);
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
        poll(&ready, 1, deadline_poll_ms(end));
    }
    if (n < 0)
        archive_set_error(a, deadline_passed(end) ? ETIMEDOUT : errno, "writing failed");
    return n;
}

static int open_writer(struct packing *p, struct err *e)
{
    int flags = fcntl(p->sink->fd, F_GETFL);
    int rc = p->format == PACK_ZIP ? archive_write_set_format_zip(p->a)
                                   : archive_write_set_format_pax_restricted(p->a);

    if (rc == ARCHIVE_OK && p->format == PACK_TAR_GZ)
        rc = archive_write_add_filter_gzip(p->a);
    /* Else what comes behind the compressed bytes is filled up with zeros. */
    if (rc == ARCHIVE_OK)
        rc = archive_write_set_bytes_in_last_block(p->a, 1);
    if (flags < 0 || fcntl(p->sink->fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return err_errno(e, "the archive's place");
    if (rc == ARCHIVE_OK)
        rc = archive_write_open(p->a, p, NULL, put_out, NULL);
    return rc == ARCHIVE_OK ? 0 : pack_error(p, e);
}

static int pack_all(struct packing *p, struct err *e)
{
    const struct snapshot *listing = &p->source->listing;

    if (open_writer(p, e) < 0)
        return -1;
    for (size_t i = 0; i < listing->n; i++)
        if (pack_file(p, listing->items[i].name, e) < 0)
            return -1;
    return archive_write_close(p->a) == ARCHIVE_OK ? 0 : pack_error(p, e);
}

int pack_files(const struct sandbox *sb, const char *folder, enum pack_format format,
               const struct pack_sink *sink, struct pack_sum *out, struct err *e)
{
    struct source source __attribute__((cleanup(source_clear))) = {.at = SANDBOX_INIT};

    if (source_open(sb, folder, &source, out, e) < 0)
        return -1;
    struct packing *p = mem_alloc(sizeof(*p));
    *p = (struct packing){.a = archive_write_new(),
                          .entry = archive_entry_new(),
                          .source = &source,
                          .format = format,
                          .sink = sink,
                          .end = sink->total_ms ? deadline_in_ms(sink->total_ms) : DEADLINE_NEVER};
    int rc = -1;

    /* For the library, which asks it whether names are UTF-8. */
    setlocale(LC_CTYPE, "C.UTF-8");
    if (!p->a || !p->entry)
        err_set(e, ERR_INTERNAL, "no memory for an archive");
    else
        rc = pack_all(p, e);
    if (rc < 0 && p->a)
        archive_write_fail(p->a); /* or freeing it would end the archive as if it were whole */
    archive_entry_free(p->entry);
    archive_write_free(p->a);
    *out = p->done;
    free(p);
    return rc;
}
