#include "config.h"

#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/privsep.h"
#include "common/base/utf8.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/archive/archive_privsep.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/files/staging.h"
#include "common/sandbox/state/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define EXTENTS_MAX 10000 /* of an archive, between its holes; more are not counted */

struct item {
    char *name; /* in the sandbox */
    bool folder;
    bool is_new;           /* nothing of that name was in the sandbox */
    uint64_t offset, size; /* of its content in the spool */
};

/* All content is written to one staged file until the archive has been read to its end: a killed
 * process leaves one file, which the sweep removes. */
struct unpacking {
    const struct sandbox *sb;
    const struct unpack_want *want;
    uint64_t archive_bytes;
    struct usage left; /* what the sandbox may still take */
    struct staged staged;
    int spool;
    uint64_t spooled, kept; /* kept: bytes that there is room for */
    struct item *items;
    size_t n;
    struct unpacked *out;
};

static void unpacking_clear(struct unpacking *u)
{
    for (size_t i = 0; i < u->n; i++)
        free(u->items[i].name);
    free(u->items);
    auto_close_fd(&u->spool);
    staged_clear(&u->staged);
}

/* ---- reading ---- */

/* tar calls the folder a "./a/", and the whole "./", which exists. 1: *out is a name, 0, -1. */
static int plain_name(struct archive_record *r, bool folder, const char **out, struct err *e)
{
    char *name = r->data;
    size_t len = r->len;

    while (len > 1 && name[0] == '.' && name[1] == '/') {
        name += 2;
        len -= 2;
    }
    while (folder && len > 0 && name[len - 1] == '/')
        name[--len] = '\0';
    *out = name;
    if (folder && (len == 0 || (len == 1 && name[0] == '.')))
        return 0;
    if (files_check_name("a name in the archive", name, len, e) < 0)
        return err_wrap(e, "'%.200s'", r->data);
    return 1;
}

static int add_item(struct unpacking *u, struct archive_record *r, struct err *e)
{
    bool folder = r->tag == ARCHIVE_FOLDER;
    const char *below = u->want->folder, *name;

    int rc = plain_name(r, folder, &name, e);
    if (rc <= 0)
        return rc;
    if (u->n == ARCHIVE_FILES_MAX)
        return err_set(e, ERR_LIMIT, "the archive holds more than %d files and folders",
                       ARCHIVE_FILES_MAX);
    if (u->n >= u->left.files)
        return err_set(
            e, ERR_LIMIT,
            "the archive holds more files and folders than the %" PRIu64
            " that the conversation may still have (SANDBOX_FILES, SANDBOX_FILES_RESERVE)",
            u->left.files);
    char *full = mem_printf("%s%s%s", below, *below ? "/" : "", name);
    u->items = mem_resize(u->items, u->n + 1, sizeof(*u->items));
    u->items[u->n++] = (struct item){.name = full, .folder = folder, .offset = u->spooled};
    return files_check_name("a name in the archive, below its folder,", full, strlen(full), e);
}

/* In steps: what else is on its way needs room, too. */
static int keep_room(struct unpacking *u, uint64_t bytes, struct err *e)
{
    uint64_t step = (bytes / QUOTA_STEP_BYTES + 1) * QUOTA_STEP_BYTES;

    if (!u->want->keep_room || bytes <= u->kept)
        return 0;
    if (step > u->left.bytes)
        step = u->left.bytes;
    if (u->want->keep_room(u->want->watch.ctx, step, u->spooled, e) < 0)
        return -1;
    u->kept = step;
    return 0;
}

static int add_content(struct unpacking *u, const struct archive_record *r, struct err *e)
{
    uint64_t bytes = u->spooled + r->len;

    if (u->n == 0 || u->items[u->n - 1].folder)
        return err_set(e, ERR_PROTOCOL, "the archive's reader brings content of no file");
    if (bytes > u->want->max_bytes)
        return err_set(e, ERR_LIMIT, "the archive's content has more than %" PRIu64 " bytes",
                       u->want->max_bytes);
    if (bytes > UNPACK_FREE_BYTES && bytes / UNPACK_RATIO_MAX > u->archive_bytes)
        return err_set(e, ERR_LIMIT,
                       "the archive's content has more than %d times the bytes of the archive",
                       UNPACK_RATIO_MAX);
    if (bytes > u->left.bytes) /* quota_check's sentence has the sizes */
        return quota_check(u->sb, bytes, e) < 0
                   ? -1
                   : err_set(e, ERR_LIMIT, "the archive's content does not fit");
    if (keep_room(u, bytes, e) < 0 ||
        quota_check_piece(u->spool, &u->sb->root->bounds, u->spooled, r->len, e) < 0 ||
        fdio_write_all(u->spool, r->data, r->len, e) < 0)
        return -1;
    u->spooled = bytes;
    u->items[u->n - 1].size += r->len;
    return 0;
}

/* They take time, as files do. */
static int take_left_out(struct unpacking *u, const struct archive_record *r, struct err *e)
{
    if (u->out->left_out++ == 0)
        snprintf(u->out->first_left_out, sizeof u->out->first_left_out, "%.*s",
                 (int)utf8_cut(r->data, r->len, sizeof u->out->first_left_out - 1), r->data);
    return u->out->left_out <= ARCHIVE_FILES_MAX
               ? 0
               : err_set(e, ERR_LIMIT, "the archive holds more than %d links", ARCHIVE_FILES_MAX);
}

/* One record: 1 it was the last, 0, -1. */
static int take_record(struct unpacking *u, struct archive_record *r, struct err *e)
{
    switch (r->tag) {
    case ARCHIVE_FOLDER:
    case ARCHIVE_FILE:
        return add_item(u, r, e);
    case ARCHIVE_ATTRIBUTES: /* files of a sandbox get its own */
        return 0;
    case ARCHIVE_REPAIRED:
        u->out->repaired++;
        return 0;
    case ARCHIVE_LEFT_OUT:
        return take_left_out(u, r, e);
    case ARCHIVE_BYTES:
        return add_content(u, r, e);
    case ARCHIVE_END:
        return 1;
    case ARCHIVE_REFUSED:
        break;
    }
    return err_set(e, ERR_INVALID, "%s", r->data);
}

static int take_all(struct unpacking *u, int records_fd, struct err *e)
{
    struct archive_record *r = mem_alloc(sizeof(*r));
    struct deadline end = deadline_in_ms(UNPACK_TIME_MS);
    struct err broken = ERR_INIT;
    int done = 0;

    while (done == 0) {
        if (u->want->watch.check && u->want->watch.check(u->want->watch.ctx, e) < 0)
            done = -1;
        else if (archive_record_read(records_fd, end, r, &broken) == 0)
            done = take_record(u, r, e);
        else if (broken.kind == ERR_LIMIT)
            done = err_set(e, ERR_LIMIT, "%s", broken.text);
        else /* its bounds of memory or time ended it, or it crashed */
            done = err_set(e, ERR_INVALID, "the archive is broken, or needs too much to be read");
    }
    free(r);
    return done < 0 ? -1 : 0;
}

static int read_archive(struct unpacking *u, int archive_fd, struct err *e)
{
    pid_t reader;
    AUTO_FD int records = archive_privsep_start(UNPACK_READER_COMMAND, archive_fd, &reader, e);

    if (records < 0)
        return -1;
    int rc = take_all(u, records, e);
    privsep_end(reader);
    return rc;
}

/* ---- checking the names ---- */

static int compare_items(const void *a, const void *b)
{
    return strcmp((*(const struct item *const *)a)->name, (*(const struct item *const *)b)->name);
}

static bool is_below(const char *name, const char *folder)
{
    size_t len = strlen(folder);

    return strncmp(name, folder, len) == 0 && name[len] == '/';
}

/* Sorted, what lies below a name follows it, behind others that continue it by a byte before '/'.
 */
static int check_pair(struct item *const *sorted, size_t n, size_t i, struct err *e)
{
    const struct item *item = sorted[i];
    size_t len = strlen(item->name);

    for (size_t k = i + 1; k < n && strncmp(sorted[k]->name, item->name, len) == 0; k++) {
        const struct item *other = sorted[k];
        bool same = strcmp(other->name, item->name) == 0;
        if (same && item->folder && other->folder)
            continue;
        if (same || (!item->folder && is_below(other->name, item->name)))
            return err_set(e, ERR_INVALID, "'%.200s' is twice in the archive", item->name);
        if (other->name[len] > '/')
            break;
    }
    return 0;
}

static int check_names(const struct unpacking *u, struct err *e)
{
    struct item **sorted = mem_array(u->n + 1, sizeof(*sorted));
    int rc = 0;

    for (size_t i = 0; i < u->n; i++)
        sorted[i] = &u->items[i];
    qsort(sorted, u->n, sizeof(*sorted), compare_items);
    for (size_t i = 0; rc == 0 && i < u->n; i++)
        rc = check_pair(sorted, u->n, i, e);
    free(sorted);
    return rc;
}

/* Against what is in the sandbox now; a program may still change it. */
static int check_free(const struct unpacking *u, struct item *item, struct err *e)
{
    struct stat st;
    AUTO_FD int fd = beneath_open(u->sb->fd, item->name, O_PATH);

    item->is_new = fd < 0 && errno == ENOENT;
    if (item->is_new)
        return 0;
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP || errno == EXDEV))
        return err_set(e, ERR_INVALID, "a folder of '%.200s' is something else in the sandbox",
                       item->name);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "the sandbox's files cannot be looked at");
    if (item->folder != S_ISDIR(st.st_mode))
        return err_set(e, ERR_EXISTS, "'%.200s' is %s in the sandbox", item->name,
                       item->folder ? "no folder" : "a folder");
    if (!item->folder && !u->want->replace)
        return err_set(e, ERR_EXISTS, "'%.200s' is in the sandbox already (overwrite: true)",
                       item->name);
    return 0;
}

/* ---- putting into the sandbox ---- */

/* For a moment the disk holds the content twice. */
static int put_file(const struct unpacking *u, const struct item *item, struct err *e)
{
    if (quota_check_disk(u->spool, &u->sb->root->bounds, item->size, e) < 0)
        return -1;
    if (lseek(u->spool, (off_t)item->offset, SEEK_SET) < 0)
        return err_errno(e, "the archive's content cannot be read again");
    if (files_put(u->sb, item->name, u->spool, item->size, u->want->replace, e) < 0)
        return err_wrap(e, "'%.200s'", item->name);
    /* Frees the blocks at once where the file system can. */
    (void)fallocate(u->spool, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)item->offset,
                    (off_t)item->size);
    return 0;
}

/* Removes the files that were new; folders stay. */
static void take_back(const struct unpacking *u, size_t n)
{
    struct err ignored = ERR_INIT;
    uint64_t deleted;

    for (size_t i = 0; i < n; i++)
        if (!u->items[i].folder && u->items[i].is_new)
            (void)files_delete(u->sb, u->items[i].name, false, NULL, &deleted, &ignored);
}

static int put_all(struct unpacking *u, struct unpacked *out, struct err *e)
{
    for (size_t i = 0; i < u->n; i++) {
        const struct item *item = &u->items[i];
        if ((item->folder ? files_make_folder(u->sb, item->name, e) : put_file(u, item, e)) < 0) {
            take_back(u, i);
            return -1;
        }
    }
    out->bytes = u->spooled;
    out->names = mem_array(u->n + 1, sizeof(*out->names));
    for (size_t i = 0; i < u->n; i++)
        if (!u->items[i].folder)
            out->names[out->files++] = TAKE_PTR(u->items[i].name);
    return 0;
}

/* The bytes without holes: those would make any ratio pass. */
static uint64_t written_bytes(int fd)
{
    uint64_t sum = 0;
    off_t from, to = 0;

    for (int i = 0; i < EXTENTS_MAX && (from = lseek(fd, to, SEEK_DATA)) >= 0; i++) {
        to = lseek(fd, from, SEEK_HOLE);
        if (to < 0)
            break;
        sum += (uint64_t)(to - from);
    }
    return sum;
}

static int check_archive(struct unpacking *u, int archive_fd, struct err *e)
{
    struct stat st;

    if (fstat(archive_fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_INVALID, "the archive is not a regular file");
    u->archive_bytes = written_bytes(archive_fd);
    return lseek(archive_fd, 0, SEEK_SET) < 0 ? err_errno(e, "the archive cannot be read") : 0;
}

static int open_spool(struct unpacking *u, struct err *e)
{
    AUTO_FD int first = staging_create_file(u->sb->root, &u->staged);

    if (first >= 0)
        u->spool = openat(u->staged.dir_fd, u->staged.name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    return u->spool < 0 ? err_errno(e, "there is no room for the archive's content") : 0;
}

int unpack(const struct sandbox *sb, int archive_fd, const struct unpack_want *want,
           struct unpacked *out, struct err *e)
{
    struct unpacking u __attribute__((cleanup(unpacking_clear))) = {
        .sb = sb, .want = want, .staged = STAGED_INIT, .spool = -1, .out = out};

    if (check_archive(&u, archive_fd, e) < 0 || quota_left(sb, &u.left, e) < 0 ||
        open_spool(&u, e) < 0 || read_archive(&u, archive_fd, e) < 0 ||
        quota_check_arrived(sb, u.spooled, e) < 0 || check_names(&u, e) < 0)
        return -1;
    for (size_t i = 0; i < u.n; i++)
        if (check_free(&u, &u.items[i], e) < 0)
            return -1;
    return put_all(&u, out, e);
}

void unpacked_clear(struct unpacked *u)
{
    for (size_t i = 0; u->names && i < u->files; i++)
        free(u->names[i]);
    free(u->names);
    *u = (struct unpacked){0};
}
