#include "config.h"

#include "common/records/run_record.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/protocol/wire.h"
#include "common/records/run_lock.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define RECORD_MAX   8192 /* bytes of run.json */
#define RECORD_DEPTH 4
#define TORN_KEPT_S  3600 /* how long a folder without a record is kept */
#define DIR_FLAGS    (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

#define RECORD_FILE  "run.json"
#define RESULT_FILE  "result.json"
#define RESULT_DRAFT ".result.json"
#define OUTPUT_FILE  "output"

static const char *const all_files[] = {RECORD_FILE, RESULT_FILE, RESULT_DRAFT, OUTPUT_FILE};

#define PATH_LEN (sizeof(".runs/.d") + RUN_ID_LEN)

static void dir_path(const char *run_id, char out[PATH_LEN])
{
    snprintf(out, PATH_LEN, ".runs/%.*s.d", RUN_ID_LEN, run_id);
}

void run_record_clear(struct run_record *r)
{
    free(r->tenant);
    free(r->conversation);
    free(r->language);
    *r = (struct run_record){0};
}

void run_record_tell(const struct run_record *r, json_t *result)
{
    json_object_set_new(result, "conversationId", json_string(r->conversation));
    json_object_set_new(result, "language", json_string(r->language));
    json_object_set_new(result, "createdAt", json_integer(r->created));
    if (r->ended)
        json_object_set_new(result, "endedAt", json_integer(r->ended));
    json_object_set_new(result, "expiresAt", json_integer(run_record_expires(r)));
}

int64_t run_record_expires(const struct run_record *r)
{
    return (r->ended ? r->ended : r->deadline) + r->ttl_s;
}

bool run_id_ok(const char *run_id)
{
    return strspn(run_id, "0123456789abcdef") == RUN_ID_LEN && !run_id[RUN_ID_LEN];
}

int run_not_found(struct err *e)
{
    return err_set(e, ERR_NOT_FOUND, "%s", WIRE_NO_SUCH_RUN);
}

void run_record_remove(const struct sandbox_root *root, const char *run_id)
{
    char path[PATH_LEN];

    dir_path(run_id, path);
    AUTO_FD int dir = openat(root->fd, path, DIR_FLAGS);
    for (size_t i = 0; dir >= 0 && i < ARRAY_LEN(all_files); i++)
        unlinkat(dir, all_files[i], 0);
    unlinkat(root->fd, path, AT_REMOVEDIR);
}

/* ---- writing ---- */

static int write_file(int dir_fd, const char *name, const char *data, size_t len, bool sync,
                      struct err *e)
{
    AUTO_FD int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            0600);
    if (fd < 0)
        return err_errno(e, "the run's %s cannot be made", name);
    if (fdio_write_all(fd, data, len, e) < 0)
        return err_wrap(e, "the run's %s", name);
    if (sync && fdatasync(fd) < 0)
        return err_errno(e, "the run's %s cannot be written", name);
    return 0;
}

static int write_record(const struct sandbox_root *root, int dir_fd, const struct run_record *r,
                        struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(RECORD_MAX);
    json_auto_t *record = json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "tenant", r->tenant,
                                    "conversationId", r->conversation, "language", r->language,
                                    "createdAt", (json_int_t)r->created, "deadline",
                                    (json_int_t)r->deadline, "ttl", (json_int_t)r->ttl_s);

    if (json_write(record, &text) < 0)
        return err_set(e, ERR_LIMIT, "the run's record is over %d bytes", RECORD_MAX);
    if (write_file(dir_fd, RECORD_FILE, text.data, text.len, true, e) < 0)
        return -1;
    /* The names must outlive a power cut as well. */
    AUTO_FD int runs = openat(root->fd, ".runs", DIR_FLAGS);
    if (runs < 0 || fsync(dir_fd) < 0 || fsync(runs) < 0)
        return err_errno(e, "the run's record cannot be written");
    return 0;
}

int run_record_begin(const struct sandbox_root *root, const char *run_id,
                     const struct run_record *record, struct err *e)
{
    char path[PATH_LEN];

    dir_path(run_id, path);
    if (mkdirat(root->fd, path, 0700) < 0)
        return err_errno(e, "the run's record cannot be made");
    AUTO_FD int dir = openat(root->fd, path, DIR_FLAGS);
    if (dir >= 0 && write_record(root, dir, record, e) == 0)
        return 0;
    if (dir < 0)
        err_errno(e, "the run's record cannot be opened");
    run_record_remove(root, run_id);
    return -1;
}

static int write_result(int dir_fd, int64_t ended, const json_t *result,
                        const struct output_ring *output, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(WIRE_MESSAGE_MAX);
    const char *status = json_get_string(result, "status");
    json_auto_t *head = json_pack("{s:I, s:s, s:I}", "endedAt", (json_int_t)ended, "status",
                                  status ? status : "", "total",
                                  (json_int_t)output_ring_total(output));

    if (json_write(head, &text) < 0)
        return err_set(e, ERR_INTERNAL, "the run's result has no head");
    buf_add_char(&text, '\n');
    if (json_write(result, &text) < 0)
        return err_set(e, ERR_LIMIT, "the run's result is over %u bytes", WIRE_MESSAGE_MAX);
    return write_file(dir_fd, RESULT_DRAFT, text.data, text.len, false, e);
}

int run_record_end(const struct sandbox_root *root, const char *run_id, int64_t ended,
                   const json_t *result, const struct output_ring *output, struct err *e)
{
    char path[PATH_LEN];
    AUTO_BUF struct buf raw = BUF_INIT(OUTPUT_RING_KEEP);

    dir_path(run_id, path);
    AUTO_FD int dir = openat(root->fd, path, DIR_FLAGS);
    if (dir < 0)
        return err_errno(e, "the run's record cannot be opened");
    output_ring_raw(output, &raw);
    if (!buf_ok(&raw))
        return err_set(e, ERR_INTERNAL, "more output was kept than a record has room for");
    if (write_file(dir, OUTPUT_FILE, buf_str(&raw), raw.len, false, e) < 0 ||
        write_result(dir, ended, result, output, e) < 0)
        return -1;
    if (renameat(dir, RESULT_DRAFT, dir, RESULT_FILE) < 0)
        return err_errno(e, "the run's result cannot be put in its place");
    return 0;
}

/* ---- reading ---- */

/* Up to max bytes of a file; a longer one is cut, or an error. */
static int read_file(int dir_fd, const char *name, struct buf *out, bool whole, struct err *e)
{
    AUTO_FD int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "%s cannot be opened", name);
    if (whole)
        return fdio_read_to_end(fd, out, e);
    char *to = buf_reserve(out, out->max);
    ssize_t n = to ? read(fd, to, out->max) : -1;
    if (n < 0)
        return err_errno(e, "%s cannot be read", name);
    buf_grew(out, (size_t)n);
    return 0;
}

/* -1 when it is missing or torn. */
static int read_record(int dir_fd, struct run_record *out)
{
    AUTO_BUF struct buf text = BUF_INIT(RECORD_MAX);
    struct err e = ERR_INIT;

    if (read_file(dir_fd, RECORD_FILE, &text, true, &e) < 0)
        return -1;
    json_auto_t *record = json_parse(buf_str(&text), text.len, RECORD_DEPTH, &e);
    const char *tenant = json_get_string(record, "tenant");
    const char *conversation = json_get_string(record, "conversationId");
    const char *language = json_get_string(record, "language");
    if (!tenant || !conversation || !language)
        return -1;
    *out = (struct run_record){
        .tenant = mem_strdup(tenant),
        .conversation = mem_strdup(conversation),
        .language = mem_strdup(language),
        .created = json_get_integer(record, "createdAt", 0),
        .deadline = json_get_integer(record, "deadline", 0),
        .ttl_s = json_get_integer(record, "ttl", 0),
    };
    return 0;
}

/* The first line of the result, with what is behind it in *rest; NULL when there is no result. */
static json_t *read_result_head(int dir_fd, struct buf *text, bool whole, const char **rest)
{
    struct err e = ERR_INIT;

    if (read_file(dir_fd, RESULT_FILE, text, whole, &e) < 0)
        return NULL;
    const char *end = memchr(buf_str(text), '\n', text->len);
    if (!end)
        return NULL;
    *rest = end + 1;
    return json_parse(text->data, (size_t)(end - text->data), RECORD_DEPTH, &e);
}

/* Opens the folder, reads the record. The folder's descriptor, or -1. */
static int open_record(const struct sandbox_root *root, const char *run_id, struct run_record *out)
{
    char path[PATH_LEN];

    dir_path(run_id, path);
    AUTO_FD int dir = openat(root->fd, path, DIR_FLAGS);
    if (dir < 0 || read_record(dir, out) < 0)
        return -1;
    return TAKE_FD(dir);
}

int run_record_look(const struct sandbox_root *root, const char *run_id, struct run_record *out,
                    char out_status[RUN_STATUS_MAX])
{
    AUTO_BUF struct buf text = BUF_INIT(RECORD_MAX);
    const char *rest;

    AUTO_FD int dir = open_record(root, run_id, out);
    if (dir < 0)
        return -1;
    json_auto_t *head = read_result_head(dir, &text, false, &rest);
    const char *status = json_get_string(head, "status");
    out->ended = json_get_integer(head, "endedAt", 0);
    snprintf(out_status, RUN_STATUS_MAX, "%s", status ? status : "");
    return 0;
}

static void read_result(int dir_fd, struct run_record *out, json_t **out_result)
{
    struct err e = ERR_INIT;
    AUTO_BUF struct buf text = BUF_INIT(WIRE_MESSAGE_MAX);
    const char *rest;
    json_auto_t *head = read_result_head(dir_fd, &text, true, &rest);

    if (head)
        *out_result = json_parse(rest, text.len - (size_t)(rest - text.data), JSON_MAX_DEPTH, &e);
    if (*out_result)
        out->ended = json_get_integer(head, "endedAt", 0);
}

int run_record_read(const struct sandbox_root *root, const char *run_id, const char *tenant,
                    struct run_record *out, json_t **out_result, struct err *e)
{
    AUTO_RUN_RECORD struct run_record r = {0};
    json_auto_t *result = NULL;

    AUTO_FD int dir = run_id_ok(run_id) ? open_record(root, run_id, &r) : -1;
    if (dir < 0 || strcmp(r.tenant, tenant) != 0)
        return run_not_found(e);
    read_result(dir, &r, &result);
    if (clock_unix_s() >= run_record_expires(&r))
        return run_not_found(e);
    *out = r;
    r = (struct run_record){0};
    *out_result = TAKE_PTR(result);
    return 0;
}

struct output_ring *run_record_output(const struct sandbox_root *root, const char *run_id,
                                      struct err *e)
{
    AUTO_BUF struct buf raw = BUF_INIT(OUTPUT_RING_KEEP);
    AUTO_BUF struct buf head_text = BUF_INIT(RECORD_MAX);
    char path[PATH_LEN];
    const char *rest;

    dir_path(run_id, path);
    AUTO_FD int dir = openat(root->fd, path, DIR_FLAGS);
    int rc = dir < 0 ? -1 : read_file(dir, OUTPUT_FILE, &raw, true, e);
    json_auto_t *head = rc < 0 ? NULL : read_result_head(dir, &head_text, false, &rest);
    json_int_t total = json_get_integer(head, "total", -1);
    if (total < (json_int_t)raw.len) {
        run_not_found(e);
        return NULL;
    }
    struct output_ring *output = output_ring_new(OUTPUT_RING_KEEP);
    output_ring_resume(output, (uint64_t)total - raw.len);
    output_ring_add(output, ENGINE_STDOUT, buf_str(&raw), raw.len);
    return output;
}

/* ---- all records ---- */

/* Calls each with the id of every record's folder. */
static int record_each(const struct sandbox_root *root,
                       void (*each)(void *ctx, int runs_fd, const char *run_id), void *ctx,
                       struct err *e)
{
    AUTO_DIR DIR *dir = beneath_open_dir(root->fd, ".runs");

    if (!dir)
        return err_errno(e, "the records of runs cannot be listed");
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char run_id[RUN_ID_LEN + 1] = "";

        if (strlen(entry->d_name) != RUN_ID_LEN + 2 ||
            strcmp(entry->d_name + RUN_ID_LEN, ".d") != 0)
            continue;
        memcpy(run_id, entry->d_name, RUN_ID_LEN);
        if (run_id_ok(run_id))
            each(ctx, dirfd(dir), run_id);
    }
    return 0;
}

json_t *run_record_row(const char *run_id, const struct run_record *r, const char *status)
{
    json_t *row = json_pack("{s:s, s:s}", "runId", run_id, "status", status);

    run_record_tell(r, row);
    return row;
}

struct listing {
    const struct sandbox_root *root;
    const char *tenant, *conversation; /* conversation NULL: any */
    int64_t now;
    json_t *rows;
};

static void listing_add(void *ctx, int runs_fd, const char *run_id)
{
    struct listing *l = ctx;
    char status[RUN_STATUS_MAX];
    AUTO_RUN_RECORD struct run_record r = {0};

    (void)runs_fd;
    if (run_record_look(l->root, run_id, &r, status) < 0 || strcmp(r.tenant, l->tenant) != 0 ||
        (l->conversation && strcmp(r.conversation, l->conversation) != 0) ||
        l->now >= run_record_expires(&r))
        return;
    json_insert_descending(l->rows, "createdAt", run_record_row(run_id, &r, status));
    if (json_array_size(l->rows) > RUN_LIST_MAX)
        json_array_remove(l->rows, RUN_LIST_MAX);
}

json_t *run_record_list(const struct sandbox_root *root, const char *tenant,
                        const char *conversation, int64_t now_unix, struct err *e)
{
    struct listing l = {root, tenant, conversation, now_unix, json_array()};
    size_t i;
    json_t *row;

    if (record_each(root, listing_add, &l, e) < 0) {
        json_decref(l.rows);
        return NULL;
    }
    json_array_foreach(l.rows, i, row)
    {
        /* A run without a result is running as long as its lock is held. */
        if (*json_get_string(row, "status"))
            continue;
        bool alive = run_lock_reap(root->fd, json_get_string(row, "runId"));
        json_object_set_new(row, "status",
                            json_string(run_status_name(alive ? RUN_RUNNING : RUN_LOST)));
    }
    return l.rows;
}

/* ---- expiry ---- */

struct sweep {
    const struct sandbox_root *root;
    int64_t now;
};

/* A new record has no run.json yet, a torn one never gets it. */
static bool is_old(int runs_fd, const char *run_id, int64_t now)
{
    char name[RUN_ID_LEN + 3];
    struct stat st;

    snprintf(name, sizeof name, "%.*s.d", RUN_ID_LEN, run_id);
    return fstatat(runs_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           now - st.st_mtim.tv_sec > TORN_KEPT_S;
}

static void sweep_one(void *ctx, int runs_fd, const char *run_id)
{
    const struct sweep *s = ctx;
    char status[RUN_STATUS_MAX];
    AUTO_RUN_RECORD struct run_record r = {0};
    bool known = run_record_look(s->root, run_id, &r, status) == 0;

    if (known ? s->now >= run_record_expires(&r) : is_old(runs_fd, run_id, s->now))
        run_record_remove(s->root, run_id);
}

void run_record_sweep(const struct sandbox_root *root, int64_t now_unix)
{
    struct sweep s = {root, now_unix};
    struct err e = ERR_INIT;

    record_each(root, sweep_one, &s, &e);
}
