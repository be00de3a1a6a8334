#include "config.h"

#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/base/privsep.h"
#include "common/rpc/json.h"
#include "common/sandbox/archive/archive_privsep.h"
#include "common/sandbox/archive/backup.h"
#include "common/sandbox/archive/restore_move.h"
#include "common/sandbox/files/owner.h"
#include "common/sandbox/files/plant.h"
#include "common/sandbox/files/staging.h"
#include "common/sandbox/state/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct restoring {
    struct restore_move to;
    struct backup_sum *sum;
    /* what the records of now are about */
    bool has_head, passed_over; /* the backup's; the conversation, which is not wanted */
    uint64_t number;            /* of the conversation; 0: none yet */
    enum backup_part part;
    struct plant tree; /* of the conversation */
    int file_fd;       /* of its file; -1: none */
    uint64_t file_bytes, bytes, files;
    struct plant_attributes next, file_is; /* of the next entry, and of the file */
    struct buf text;                       /* of the head or a record */
};

static int finish_file(struct restoring *r, struct err *e)
{
    if (r->file_fd < 0)
        return 0;
    if (plant_finish_file(&r->tree, r->file_fd, &r->file_is, e) < 0)
        return -1;
    r->sum->files++;
    auto_close_fd(&r->file_fd);
    return 0;
}

/* The text of the head or a record is whole. */
static int take_text(struct restoring *r, struct err *e);

static int finish_entry(struct restoring *r, struct err *e)
{
    if (finish_file(r, e) < 0)
        return -1;
    if (r->text.len == 0)
        return 0;
    int rc = take_text(r, e);
    buf_reset(&r->text);
    return rc;
}

/* ---- a conversation's record ---- */

static int stage_folder(struct restoring *r, struct restored *c, struct err *e)
{
    AUTO_STAGED struct staged staged = STAGED_INIT;

    r->tree.owner = owner_new(r->to.root);
    if (quota_check_disk(r->to.root->fd, &r->to.root->bounds, 0, e) < 0)
        return -1;
    if (staging_create_folder(r->to.root, r->tree.owner, &staged) < 0)
        return err_errno(e, "a conversation's directory cannot be made");
    memcpy(c->staged, staged.name, sizeof c->staged);
    staged.name[0] = '\0'; /* removed with the rest, or moved */
    r->tree.dir_fd = openat(r->to.staging_fd, c->staged,
                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return r->tree.dir_fd < 0 ? err_errno(e, "a conversation's directory cannot be opened") : 0;
}

/* Is c, whose tenant and conversation are set, to be restored? 1, 0, -1. Sets its name. */
static int choose(struct restoring *r, struct restored *c, struct err *e)
{
    const struct restore_want *want = r->to.want;

    if ((want->tenant && strcmp(want->tenant, c->tenant) != 0) ||
        (want->conversation && strcmp(want->conversation, c->conversation) != 0))
        return 0;
    if (sandbox_name(r->to.root, c->tenant, c->conversation, c->name, e) < 0)
        return err_wrap(e, "a record in the backup");
    if (want->skip_existing && restore_is_there(&r->to, c)) {
        r->sum->skipped++;
        return 0;
    }
    return restore_check_target(&r->to, c, e) < 0 ? -1 : 1;
}

static int take_record_text(struct restoring *r, struct err *e)
{
    struct restored c = {.tenant = NULL};

    if (backup_record_parse(r->text.data, r->text.len, &c.tenant, &c.conversation, e) < 0)
        return -1;
    r->bytes = r->files = 0;
    const int wanted = choose(r, &c, e);
    r->passed_over = wanted == 0;
    if (wanted <= 0) {
        free(c.tenant);
        free(c.conversation);
        return wanted;
    }
    r->to.all = mem_resize(r->to.all, r->to.n + 1, sizeof *r->to.all);
    r->to.all[r->to.n] = c;
    return stage_folder(r, &r->to.all[r->to.n++], e);
}

static int take_text(struct restoring *r, struct err *e)
{
    if (r->part == BACKUP_PART_RECORD)
        return take_record_text(r, e);
    struct err why = ERR_INIT;
    json_auto_t *head = json_parse(r->text.data, r->text.len, 2, &why);
    if (json_get_integer(head, "version", 0) != 1)
        return err_set(e, ERR_INVALID, "the backup is of a version that this program cannot read");
    r->has_head = true;
    return 0;
}

/* ---- files and folders ---- */

static int make_file(struct restoring *r, const char *name, struct err *e)
{
    r->file_fd = plant_file(&r->tree, name, e);
    r->file_bytes = 0;
    r->file_is = r->next;
    return r->file_fd < 0 ? -1 : 0;
}

static int take_name(struct restoring *r, const struct backup_entry *entry, bool is_folder,
                     struct err *e)
{
    if (r->passed_over)
        return 0;
    if (r->to.root->bounds.files > 0 && ++r->files > r->to.root->bounds.files)
        return err_set(e, ERR_LIMIT,
                       "conversation %s of %s has more than %" PRIu64
                       " files and folders (SANDBOX_FILES)",
                       r->to.all[r->to.n - 1].conversation, r->to.all[r->to.n - 1].tenant,
                       r->to.root->bounds.files);
    return is_folder ? plant_folder(&r->tree, entry->name, &r->next, e)
                     : make_file(r, entry->name, e);
}

/* The order is the one of backup_write. */
static int take_entry(struct restoring *r, const char *path, bool is_folder, struct err *e)
{
    struct backup_entry entry;

    if (finish_entry(r, e) < 0 || backup_entry_parse(path, &entry, e) < 0)
        return -1;
    r->part = entry.part;
    if (is_folder != (entry.part == BACKUP_PART_TOP) && entry.part != BACKUP_PART_FILE)
        return err_set(e, ERR_INVALID, "'%.200s' is no file or folder in a backup", path);
    if (entry.part == BACKUP_PART_HEAD ? r->has_head : !r->has_head)
        return err_set(e, ERR_INVALID, "this is no backup: '" BACKUP_HEAD "' is not first in it");
    if (entry.part == BACKUP_PART_RECORD && entry.number > r->number) {
        r->number = entry.number;
        return plant_finish(&r->tree, e);
    }
    if (entry.number != r->number || entry.part == BACKUP_PART_RECORD)
        return err_set(e, ERR_INVALID, "'%.200s' is not in its place in the backup", path);
    return entry.part == BACKUP_PART_FILE ? take_name(r, &entry, is_folder, e) : 0;
}

static int take_bytes(struct restoring *r, const struct archive_record *record, struct err *e)
{
    const struct sandbox_bounds *bounds = &r->to.root->bounds;

    if (r->part == BACKUP_PART_HEAD || r->part == BACKUP_PART_RECORD) {
        buf_add(&r->text, record->data, record->len);
        return buf_ok(&r->text) ? 0 : err_set(e, ERR_INVALID, "a record in the backup is too long");
    }
    if (r->passed_over)
        return 0;
    if (r->file_fd < 0)
        return err_set(e, ERR_PROTOCOL, "the backup's reader brings content of no file");
    r->bytes += record->len;
    if (bounds->bytes > 0 && r->bytes > bounds->bytes)
        return err_set(
            e, ERR_LIMIT, "conversation %s of %s has more than %" PRIu64 " bytes (SANDBOX_QUOTA)",
            r->to.all[r->to.n - 1].conversation, r->to.all[r->to.n - 1].tenant, bounds->bytes);
    if (quota_check_piece(r->file_fd, bounds, r->file_bytes, record->len, e) < 0 ||
        fdio_write_all(r->file_fd, record->data, record->len, e) < 0)
        return -1;
    r->file_bytes += record->len;
    r->sum->bytes += record->len;
    return 0;
}

/* "<octal mode> <Unix seconds>" */
static int take_attributes(struct restoring *r, char *text, struct err *e)
{
    char *blank = strchr(text, ' ');
    unsigned mode;
    uint64_t mtime;

    if (blank)
        *blank = '\0';
    if (!blank || parse_mode(text, &mode) < 0 ||
        parse_u64(blank + 1, 0, INT32_MAX * 8ull, &mtime) < 0)
        return err_set(e, ERR_PROTOCOL, "the backup's reader says something meaningless");
    r->next = (struct plant_attributes){mode & 0777, {.tv_sec = (time_t)mtime}};
    return 0;
}

/* One record: 1 it was the last, 0, -1. */
static int take_record(struct restoring *r, struct archive_record *record, struct err *e)
{
    switch (record->tag) {
    case ARCHIVE_ATTRIBUTES:
        return take_attributes(r, record->data, e);
    case ARCHIVE_FOLDER:
        while (record->len > 1 && record->data[record->len - 1] == '/')
            record->data[--record->len] = '\0';
        return take_entry(r, record->data, true, e);
    case ARCHIVE_FILE:
        return take_entry(r, record->data, false, e);
    case ARCHIVE_BYTES:
        return take_bytes(r, record, e);
    case ARCHIVE_END:
        if (finish_entry(r, e) < 0 || plant_finish(&r->tree, e) < 0)
            return -1;
        return r->has_head ? 1 : err_set(e, ERR_INVALID, "this is no backup");
    case ARCHIVE_REFUSED:
    case ARCHIVE_REPAIRED:
    case ARCHIVE_LEFT_OUT:
        break;
    }
    return err_set(e, ERR_INVALID, "%s", record->data);
}

static int read_backup(struct restoring *r, int fd, struct err *e)
{
    pid_t reader;
    AUTO_FD int records = archive_privsep_start(BACKUP_READER_COMMAND, fd, &reader, e);
    struct archive_record *record = mem_alloc(sizeof *record);
    struct err broken = ERR_INIT;
    int done = records < 0 ? -1 : 0;

    while (done == 0) {
        if (archive_record_read(records, DEADLINE_NEVER, record, &broken) == 0)
            done = take_record(r, record, e);
        else
            done = err_set(e, ERR_INVALID, "the backup is broken, or needs too much to be read");
    }
    free(record);
    if (records >= 0)
        privsep_end(reader);
    return done < 0 ? -1 : 0;
}

static void restoring_clear(struct restoring *r)
{
    auto_close_fd(&r->file_fd);
    plant_clear(&r->tree);
    auto_close_fd(&r->to.staging_fd);
    for (size_t i = 0; i < r->to.n; i++) {
        free(r->to.all[i].tenant);
        free(r->to.all[i].conversation);
    }
    free(r->to.all);
    buf_clear(&r->text);
}

int backup_restore(const struct sandbox_root *root, int fd, const struct restore_want *want,
                   struct backup_sum *out, struct err *e)
{
    struct restoring r __attribute__((cleanup(restoring_clear))) = {
        .to = {.root = root,
               .want = want,
               .staging_fd = openat(root->fd, STAGING_DIR,
                                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)},
        .sum = out,
        .tree = {.dir_fd = -1, .from = "the backup"},
        .file_fd = -1,
        .text = BUF_INIT(BACKUP_RECORD_MAX)};

    *out = (struct backup_sum){0};
    if (r.to.staging_fd < 0)
        return err_errno(e, STAGING_DIR " of SANDBOX_ROOT cannot be opened");
    int rc = read_backup(&r, fd, e);
    if (rc == 0 && want->conversation && r.to.n == 0 && out->skipped == 0)
        rc = err_set(e, ERR_NOT_FOUND, "the backup has no conversation %s%s%s", want->conversation,
                     want->tenant ? " of " : "", want->tenant ? want->tenant : "");
    if (rc < 0 || restore_move_all(&r.to, e) < 0) {
        *out = (struct backup_sum){0};
        return restore_take_back(&r.to, e);
    }
    out->conversations = r.to.n;
    return 0;
}
