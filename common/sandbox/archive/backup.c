#include "config.h"

#include "common/sandbox/archive/backup.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/state/retention.h"
#include "common/sandbox/state/state.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK        65536
#define RECORD_DEPTH 4
#define NUMBER_MAX   1000000000 /* conversations of one backup */
#define NUMBER_LEN   10

/* ---- names and records ---- */

static int no_backup(const char *path, struct err *e)
{
    return err_set(e, ERR_INVALID, "'%.200s' has no place in a backup", path);
}

int backup_entry_parse(const char *path, struct backup_entry *out, struct err *e)
{
    const char *slash = strchr(path, '/');
    const size_t len = slash ? (size_t)(slash - path) : 0;
    char number[NUMBER_LEN + 1] = "";

    *out = (struct backup_entry){.part = BACKUP_PART_HEAD, .name = ""};
    if (strcmp(path, BACKUP_HEAD) == 0)
        return 0;
    if (len == 0 || len > NUMBER_LEN)
        return no_backup(path, e);
    memcpy(number, path, len);
    if (parse_u64(number, 1, NUMBER_MAX, &out->number) < 0)
        return no_backup(path, e);
    const char *rest = slash + 1;
    out->part = strcmp(rest, BACKUP_RECORD) == 0 ? BACKUP_PART_RECORD : BACKUP_PART_TOP;
    if (out->part == BACKUP_PART_RECORD || strcmp(rest, BACKUP_FILES) == 0)
        return 0;
    if (strncmp(rest, BACKUP_FILES "/", sizeof BACKUP_FILES) != 0 ||
        !beneath_name_fits(rest + sizeof BACKUP_FILES))
        return no_backup(path, e);
    out->part = BACKUP_PART_FILE;
    out->name = rest + sizeof BACKUP_FILES;
    return 0;
}

int backup_record_parse(const char *text, size_t len, char **out_tenant, char **out_conversation,
                        struct err *e)
{
    struct err why = ERR_INIT;
    json_auto_t *record = json_parse(text, len, RECORD_DEPTH, &why);
    const char *tenant = json_get_string(record, "tenant");
    const char *conversation = json_get_string(record, "conversationId");

    if (!tenant || !conversation)
        return err_set(e, ERR_INVALID, "a record in the backup is damaged");
    *out_tenant = mem_strdup(tenant);
    *out_conversation = mem_strdup(conversation);
    return 0;
}

/* ---- writing ---- */

struct writing {
    struct archive *a;
    struct archive_entry *entry;
    struct backup_sum *sum;
    char *path; /* of the present conversation in the archive: "<n>/files" */
    char block[BLOCK];
};

static int write_error(const struct writing *w, struct err *e)
{
    const char *why = archive_error_string(w->a);

    return err_set(e, ERR_IO, "the backup cannot be written: %s", why ? why : "unknown");
}

static int begin_entry(struct writing *w, const char *path, unsigned type, mode_t mode,
                       uint64_t size, int64_t mtime, struct err *e)
{
    archive_entry_clear(w->entry);
    archive_entry_copy_pathname(w->entry, path);
    archive_entry_set_filetype(w->entry, type);
    archive_entry_set_perm(w->entry, mode & 0777);
    archive_entry_set_size(w->entry, (la_int64_t)size);
    archive_entry_set_mtime(w->entry, mtime, 0);
    int rc = archive_write_header(w->a, w->entry);
    return rc == ARCHIVE_OK || rc == ARCHIVE_WARN ? 0 : write_error(w, e);
}

static int write_text(struct writing *w, const char *path, const json_t *value, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(BACKUP_RECORD_MAX);

    if (json_write(value, &text) < 0)
        return err_set(e, ERR_LIMIT, "a record is over %d bytes", BACKUP_RECORD_MAX);
    if (begin_entry(w, path, AE_IFREG, 0600, text.len, clock_unix_s(), e) < 0)
        return -1;
    return archive_write_data(w->a, text.data, text.len) == (la_ssize_t)text.len
               ? 0
               : write_error(w, e);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && clock_ns_of(a->st_mtim) == clock_ns_of(b->st_mtim);
}

static int write_content(struct writing *w, int fd, uint64_t left, struct err *e)
{
    while (left > 0) {
        size_t want = left < BLOCK ? (size_t)left : BLOCK;
        ssize_t n = read(fd, w->block, want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) { /* it became shorter, or cannot be read */
            memset(w->block, 0, want);
            n = (ssize_t)want;
        }
        if (archive_write_data(w->a, w->block, (size_t)n) != n)
            return write_error(w, e);
        left -= (uint64_t)n;
    }
    return 0;
}

static int write_file(struct writing *w, int dir_fd, const char *name, const char *path,
                      struct err *e)
{
    struct stat before, after;
    AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &before) < 0 || !S_ISREG(before.st_mode)) {
        w->sum->left_out++;
        return 0;
    }
    AUTO_FREE char *full = mem_printf("%s/%s", w->path, path);
    if (begin_entry(w, full, AE_IFREG, before.st_mode, (uint64_t)before.st_size,
                    before.st_mtim.tv_sec, e) < 0 ||
        write_content(w, fd, (uint64_t)before.st_size, e) < 0)
        return -1;
    w->sum->files++;
    w->sum->bytes += (uint64_t)before.st_size;
    w->sum->changed += fstat(fd, &after) < 0 || !is_same(&before, &after);
    return 0;
}

static int write_dir(struct writing *w, int at_fd, const char *name, const char *path, int depth,
                     struct err *e);

/* What is not a folder is opened, and then looked at: a program may change it meanwhile. */
static int write_one(struct writing *w, DIR *dir, const char *name, const char *above, int depth,
                     struct err *e)
{
    AUTO_FREE char *path = mem_printf("%s%s%s", above, *above ? "/" : "", name);
    struct stat st;

    if (strlen(path) > FILES_NAME_MAX || depth == FILES_DEPTH_MAX) {
        w->sum->left_out++;
        return 0;
    }
    if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; /* it has gone */
    if (S_ISDIR(st.st_mode))
        return write_dir(w, dirfd(dir), name, path, depth + 1, e);
    if (S_ISREG(st.st_mode))
        return write_file(w, dirfd(dir), name, path, e);
    w->sum->left_out++;
    return 0;
}

static int write_dir(struct writing *w, int at_fd, const char *name, const char *path, int depth,
                     struct err *e)
{
    AUTO_DIR DIR *dir = beneath_open_dir(at_fd, name);
    AUTO_FREE char *full = mem_printf("%s%s%s", w->path, *path ? "/" : "", path);
    struct stat st;

    if (!dir || fstat(dirfd(dir), &st) < 0) {
        w->sum->left_out++;
        return 0;
    }
    if (begin_entry(w, full, AE_IFDIR, st.st_mode, 0, st.st_mtim.tv_sec, e) < 0)
        return -1;
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (!beneath_is_dot(entry->d_name) && write_one(w, dir, entry->d_name, path, depth, e) < 0)
            return -1;
    return 0;
}

/* One that is deleted now is passed over. */
static int write_conversation(struct writing *w, const struct sandbox_root *root, const char *name,
                              const char *tenant, struct err *e)
{
    AUTO_STATE_RECORD struct state_record record = {0};
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct err gone = ERR_INIT;

    if (state_read(root, name, &record, &gone) < 0) {
        w->sum->unknown++;
        return 0;
    }
    if (tenant && strcmp(record.tenant, tenant) != 0)
        return 0;
    if (sandbox_find_named(root, name, &sb, &gone) < 0) {
        if (gone.kind == ERR_NOT_FOUND)
            return 0;
        *e = gone;
        return err_wrap(e, "conversation %s of %s", record.conversation, record.tenant);
    }
    const uint64_t n = ++w->sum->conversations;
    AUTO_FREE char *path = mem_printf("%" PRIu64 "/" BACKUP_RECORD, n);
    json_auto_t *head = json_pack("{s:s, s:s}", "tenant", record.tenant, "conversationId",
                                  record.conversation);
    free(w->path);
    w->path = mem_printf("%" PRIu64 "/" BACKUP_FILES, n);
    return write_text(w, path, head, e) < 0 ? -1 : write_dir(w, sb.fd, ".", "", 0, e);
}

static int write_all(struct writing *w, const struct sandbox_root *root, const char *tenant,
                     struct err *e)
{
    AUTO_RETENTION struct retention all = {0};
    json_auto_t *head = json_pack("{s:i, s:I}", "version", 1, "createdAt",
                                  (json_int_t)clock_unix_s());

    if (retention_gather(root, &all, e) < 0 || write_text(w, BACKUP_HEAD, head, e) < 0)
        return -1;
    for (size_t i = 0; i < all.n; i++)
        if (write_conversation(w, root, all.items[i].name, tenant, e) < 0)
            return -1;
    return archive_write_close(w->a) == ARCHIVE_OK ? 0 : write_error(w, e);
}

static int open_writer(const struct writing *w, enum backup_format format, int fd, struct err *e)
{
    int rc = archive_write_set_format_pax_restricted(w->a);

    if (rc == ARCHIVE_OK && format == BACKUP_TAR_GZ)
        rc = archive_write_add_filter_gzip(w->a);
    if (rc == ARCHIVE_OK && format == BACKUP_TAR_ZST)
        rc = archive_write_add_filter_zstd(w->a);
    if (rc == ARCHIVE_OK)
        rc = archive_write_set_bytes_in_last_block(w->a, 1);
    if (rc == ARCHIVE_OK)
        rc = archive_write_open_fd(w->a, fd);
    return rc == ARCHIVE_OK ? 0 : write_error(w, e);
}

int backup_write(const struct sandbox_root *root, const char *tenant, enum backup_format format,
                 int fd, struct backup_sum *out, struct err *e)
{
    struct writing *w = mem_alloc(sizeof *w);
    int rc = -1;

    *out = (struct backup_sum){0};
    w->a = archive_write_new();
    w->entry = archive_entry_new();
    w->sum = out;
    /* For the library, which asks it whether names are UTF-8. */
    setlocale(LC_CTYPE, "C.UTF-8");
    if (!w->a || !w->entry)
        err_set(e, ERR_INTERNAL, "no memory for a backup");
    else if (open_writer(w, format, fd, e) == 0)
        rc = write_all(w, root, tenant, e);
    if (rc < 0 && w->a)
        archive_write_fail(w->a); /* or freeing it would end the archive as if it were whole */
    archive_entry_free(w->entry);
    archive_write_free(w->a);
    free(w->path);
    free(w);
    return rc;
}
