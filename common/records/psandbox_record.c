#include "config.h"

#include "common/records/psandbox_record.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/tenants.h"
#include "common/protocol/run_id.h"
#include "common/protocol/wire.h"
#include "common/records/run_lock.h"
#include "common/records/run_record.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/beneath.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define PSANDBOXES_DIR ".sandboxes"
#define RECORD_MAX     8192 /* bytes */
#define RECORD_DEPTH   3
#define NAME_LEN       (RUN_ID_LEN + sizeof ".json.new")
#define LOST_REASON    "the process that looked after it died"

/* ---- names ---- */

static void file_name(const char *run_id, const char *ending, char out[NAME_LEN])
{
    snprintf(out, NAME_LEN, "%.*s%s", RUN_ID_LEN, run_id, ending);
}

static int open_psandboxes(const struct sandbox_root *root, struct err *e)
{
    int fd = openat(root->fd, PSANDBOXES_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? err_errno(e, "the records of sandboxes cannot be opened") : fd;
}

/* ---- writing ---- */

/* By renaming: readers see the old file or the new one. */
static int file_replace(int dir_fd, const char *run_id, const char *ending,
                        const struct buf *content, struct err *e)
{
    char name[NAME_LEN], draft[NAME_LEN];

    file_name(run_id, ending, name);
    file_name(run_id, ".new", draft);
    AUTO_FD int fd = openat(dir_fd, draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                            0600);
    if (fd < 0)
        return err_errno(e, "a sandbox's record cannot be made");
    if (fdio_write_all(fd, buf_str(content), content->len, e) < 0)
        return err_wrap(e, "a sandbox's record");
    if (renameat(dir_fd, draft, dir_fd, name) < 0)
        return err_errno(e, "a sandbox's record cannot be put in its place");
    return 0;
}

int psandbox_record_write(const struct sandbox_root *root, const char *run_id, const json_t *record,
                          struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(RECORD_MAX);

    AUTO_FD int dir = open_psandboxes(root, e);
    if (dir < 0)
        return -1;
    if (json_write(record, &text) < 0)
        return err_set(e, ERR_LIMIT, "a sandbox's record is over %d bytes", RECORD_MAX);
    return file_replace(dir, run_id, ".json", &text, e);
}

int psandbox_record_write_log(const struct sandbox_root *root, const char *run_id,
                              const struct output *log, struct err *e)
{
    AUTO_BUF struct buf raw = BUF_INIT(OUTPUT_NEWEST);

    AUTO_FD int dir = open_psandboxes(root, e);
    if (dir < 0)
        return -1;
    output_raw(log, &raw);
    return file_replace(dir, run_id, ".log", &raw, e);
}

/* ---- reading ---- */

int psandbox_not_found(struct err *e)
{
    return err_set(e, ERR_NOT_FOUND, "%s", WIRE_NO_SUCH_SANDBOX);
}

/* New reference; NULL: it is missing or torn. */
static json_t *read_record(int dir_fd, const char *run_id)
{
    AUTO_BUF struct buf text = BUF_INIT(RECORD_MAX);
    struct err e = ERR_INIT;
    char name[NAME_LEN];

    file_name(run_id, ".json", name);
    AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fdio_read_to_end(fd, &text, &e) < 0)
        return NULL;
    json_t *record = json_parse(buf_str(&text), text.len, RECORD_DEPTH, &e);
    if (record && json_get_string(record, "tenant") && json_get_string(record, "conversationId") &&
        json_get_string(record, "status"))
        return record;
    json_decref(record);
    return NULL;
}

json_t *psandbox_record_read(const struct sandbox_root *root, const char *run_id)
{
    struct err e = ERR_INIT;
    AUTO_FD int dir = open_psandboxes(root, &e);

    return dir < 0 ? NULL : read_record(dir, run_id);
}

void psandbox_record_strip(json_t *record)
{
    static const char *const ours[] = {"tenant", "begunUs", "keepSeconds"};

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        json_object_del(record, ours[i]);
}

/* The row for the owner. */
static json_t *row_of(const struct sandbox_root *root, const char *run_id, json_t *take_record)
{
    if (json_get_integer(take_record, "endedAt", 0) <= 0 && !run_lock_reap(root->fd, run_id)) {
        json_object_set_new(take_record, "status", json_string("lost"));
        json_object_set_new(take_record, "reason", json_string(LOST_REASON));
    }
    psandbox_record_strip(take_record);
    return take_record;
}

json_t *psandbox_record_row(const struct sandbox_root *root, const char *psandbox_id,
                            const char *tenant, struct err *e)
{
    const char *run_id = psandbox_run_id(psandbox_id);

    AUTO_FD int dir = run_id ? open_psandboxes(root, e) : -1;
    json_t *record = dir < 0 ? NULL : read_record(dir, run_id);
    if (record && strcmp(json_get_string(record, "tenant"), tenant) == 0)
        return row_of(root, run_id, record);
    json_decref(record);
    psandbox_not_found(e);
    return NULL;
}

const char *psandbox_record_end(const json_t *row)
{
    const char *status = json_get_string(row, "status");

    if (strcmp(status, "expired") == 0)
        return "has expired";
    return strcmp(status, "lost") == 0 ? "is lost" : "is closed";
}

int psandbox_record_say_end(const json_t *row, struct err *e)
{
    const char *reason = json_get_string(row, "reason");

    return err_set(e, ERR_NOT_FOUND, "sandboxId: this sandbox %s (%s)", psandbox_record_end(row),
                   reason ? reason : "it is ending");
}

void psandbox_record_read_log(const struct sandbox_root *root, const char *psandbox_id,
                              struct buf *out)
{
    const char *run_id = psandbox_run_id(psandbox_id);
    struct err e = ERR_INIT;
    char name[NAME_LEN];

    AUTO_FD int dir = run_id ? open_psandboxes(root, &e) : -1;
    if (dir < 0)
        return;
    file_name(run_id, ".log", name);
    AUTO_FD int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        fdio_read_to_end(fd, out, &e);
}

/* ---- all records ---- */

/* Reads the next record; false: there is none. *out_record NULL: it is torn. */
static bool record_next(DIR *dir, char out_run_id[RUN_ID_LEN + 1], json_t **out_record)
{
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (strlen(entry->d_name) != RUN_ID_LEN + 5 ||
            strcmp(entry->d_name + RUN_ID_LEN, ".json") != 0)
            continue;
        snprintf(out_run_id, RUN_ID_LEN + 1, "%.*s", RUN_ID_LEN, entry->d_name);
        if (run_id_ok(out_run_id)) {
            *out_record = read_record(dirfd(dir), out_run_id);
            return true;
        }
    }
    return false;
}

int psandbox_record_each(const struct sandbox_root *root,
                         void (*take)(void *ctx, const char *run_id, const json_t *record),
                         void *ctx, struct err *e)
{
    AUTO_DIR DIR *dir = beneath_open_dir(root->fd, PSANDBOXES_DIR);
    char run_id[RUN_ID_LEN + 1];

    if (!dir)
        return err_errno(e, "the records of sandboxes cannot be listed");
    for (json_t *record; record_next(dir, run_id, &record); json_decref(record))
        if (record)
            take(ctx, run_id, record);
    return 0;
}

struct listing {
    const struct sandbox_root *root;
    const char *tenant, *conversation; /* NULL: any */
    json_t *rows;
};

static bool record_belongs_to(const json_t *record, const char *tenant, const char *conversation)
{
    return strcmp(json_get_string(record, "tenant"), tenant) == 0 &&
           (!conversation || strcmp(json_get_string(record, "conversationId"), conversation) == 0);
}

static void list_one(void *ctx, const char *run_id, const json_t *record)
{
    struct listing *l = ctx;

    if (!record_belongs_to(record, l->tenant, l->conversation))
        return;
    json_insert_newest(l->rows, "sandboxId",
                       row_of(l->root, run_id, json_copy((json_t *)(uintptr_t)record)));
    if (json_array_size(l->rows) > PSANDBOX_LIST_MAX)
        json_array_remove(l->rows, PSANDBOX_LIST_MAX);
}

json_t *psandbox_record_list(const struct sandbox_root *root, const char *tenant,
                             const char *conversation, struct err *e)
{
    struct listing l = {root, tenant, conversation, json_array()};

    if (psandbox_record_each(root, list_one, &l, e) == 0)
        return l.rows;
    json_decref(l.rows);
    return NULL;
}

struct session_search {
    const struct sandbox_root *root;
    const char *tenant, *conversation, *language, *but_run_id;
    json_int_t begun_us; /* of the newest found */
    json_t *row;
};

static void compare_session(void *ctx, const char *run_id, const json_t *record)
{
    struct session_search *s = ctx;
    const char *language = json_get_string(record, "language");
    json_int_t begun_us = json_get_integer(record, "begunUs", 0);

    if (!json_get_bool(record, "session", 0) || !language ||
        !tenants_list_has(language, s->language) ||
        !record_belongs_to(record, s->tenant, s->conversation) ||
        strcmp(run_id, s->but_run_id) == 0 || begun_us < s->begun_us)
        return;
    s->begun_us = begun_us;
    json_decref(s->row);
    s->row = row_of(s->root, run_id, json_copy((json_t *)(uintptr_t)record));
}

json_t *psandbox_record_last_session(const struct sandbox_root *root, const char *tenant,
                                     const char *conversation, const char *language,
                                     const char *but_run_id)
{
    struct session_search s = {root, tenant, conversation, language, but_run_id, 0, NULL};
    struct err e = ERR_INIT;

    if (psandbox_record_each(root, compare_session, &s, &e) < 0)
        log_warn("%s", e.text);
    return s.row;
}

void psandbox_record_sweep(const struct sandbox_root *root, int64_t now_unix)
{
    static const char *const endings[] = {".json", ".log", ".new"};
    AUTO_DIR DIR *dir = beneath_open_dir(root->fd, PSANDBOXES_DIR);
    char run_id[RUN_ID_LEN + 1], name[NAME_LEN];

    for (json_t *record; dir && record_next(dir, run_id, &record); json_decref(record)) {
        int64_t ended = json_get_integer(record, "endedAt", 0);
        int64_t kept_from = ended ? ended : json_get_integer(record, "expiresAt", 0);

        if (now_unix <= kept_from + json_get_integer(record, "keepSeconds", 0) ||
            run_lock_reap(root->fd, run_id))
            continue;
        for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
            file_name(run_id, endings[i], name);
            unlinkat(dirfd(dir), name, 0);
        }
    }
}
