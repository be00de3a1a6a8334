#include "config.h"

#include "common/records/kept_runs.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/protocol/run_id.h"
#include "common/records/run_lock.h"
#include "common/records/run_result.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TORN_KEPT_S 3600 /* how long a folder without a record is kept */
#define RUN_BYTES   8192 /* of a record besides its result and output */
#define LOOK_MS     10

/* ---- one ---- */

/* Of a run without a result; running: its supervisor is alive, but unknown to the main process. */
static json_t *run_without_result(const struct sandbox_root *root, const struct run_record *r,
                                  const char *run_id)
{
    json_t *result = run_result_lost(run_id,
                                     "its supervisor ended without leaving a result (the server "
                                     "died, or its disk is full): the outcome is unknown");

    if (run_lock_reap(root->fd, run_id)) {
        json_object_set_new(result, "status", json_string(run_status_name(RUN_RUNNING)));
        json_object_set_new(result, "durationMs",
                            json_integer(1000 * (clock_unix_s() - r->created)));
        json_object_del(result, "reason");
    }
    return result;
}

int kept_run_read(const struct sandbox_root *root, const char *run_id, const char *tenant,
                  struct deadline last, struct run_record *out, json_t **out_result, struct err *e)
{
    for (;;) {
        /* Before reading: a result that is written in between is seen. */
        bool alive = run_id_ok(run_id) && run_lock_reap(root->fd, run_id);
        if (run_record_read(root, run_id, tenant, out, out_result, e) < 0)
            return -1;
        if (*out_result || !alive || deadline_passed(last))
            return 0;
        run_record_clear(out);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
}

/* tenant NULL: there is none. */
static void run_add_output(const struct sandbox_root *root, const char *run_id, const char *tenant,
                           uint64_t since, size_t max, json_t *result)
{
    struct err e = ERR_INIT;
    struct output *output = tenant ? run_record_output(root, run_id, tenant, &e) : NULL;

    if (!output) {
        output = output_new(0, 1);
        output_resume(output, since);
    }
    run_result_add_new(result, output, since, max, true);
    output_free(output);
}

json_t *kept_run_get(const struct sandbox_root *root, const json_t *head, struct deadline last,
                     struct err *e)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *run_id = json_get_string(head, "runId");
    json_int_t since = json_get_integer(head, "sinceByte", -1);
    AUTO_RUN_RECORD struct run_record r = {0};
    json_t *result = NULL;

    if (!tenant || !run_id) {
        run_not_found(e);
        return NULL;
    }
    if (kept_run_read(root, run_id, tenant, last, &r, &result, e) < 0)
        return NULL;
    bool known = result != NULL;
    if (!known)
        result = run_without_result(root, &r, run_id);
    run_record_tell(&r, result);
    if (since >= 0)
        run_add_output(root, run_id, known ? tenant : NULL, (uint64_t)since,
                       (size_t)json_get_integer(head, "newMax", 0), result);
    return result;
}

/* ---- lists ---- */

/* Calls each with the name of every record's folder, or of every one of a tenant. */
static int record_each(const struct sandbox_root *root, const char *tenant,
                       void (*each)(void *ctx, int runs_fd, const char *name), void *ctx,
                       struct err *e)
{
    AUTO_DIR DIR *dir = beneath_open_dir(root->fd, RUN_RECORDS_DIR);
    char of_tenant[RUN_RECORD_NAME_LEN + 1] = "";

    if (!dir)
        return err_errno(e, "the records of runs cannot be listed");
    if (tenant)
        run_record_name("", tenant, of_tenant);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const char *name = entry->d_name;
        if (strspn(name, "0123456789abcdef") == RUN_ID_LEN && strlen(name) == RUN_RECORD_NAME_LEN &&
            (!tenant || strcmp(name + RUN_ID_LEN, of_tenant) == 0))
            each(ctx, dirfd(dir), name);
    }
    return 0;
}

struct listing {
    const char *tenant, *conversation; /* conversation NULL: any */
    int64_t now;
    json_t *rows;
};

static void listing_add(void *ctx, int runs_fd, const char *name)
{
    struct listing *l = ctx;
    char run_id[RUN_ID_LEN + 1] = "";
    char status[RUN_STATUS_MAX];
    AUTO_RUN_RECORD struct run_record r = {0};

    memcpy(run_id, name, RUN_ID_LEN);
    if (run_record_look(runs_fd, name, &r, status) < 0 || strcmp(r.tenant, l->tenant) != 0 ||
        (l->conversation && strcmp(r.conversation, l->conversation) != 0) ||
        l->now >= run_record_expires(&r))
        return;
    json_insert_newest(l->rows, "runId", run_record_row(run_id, &r, status));
    if (json_array_size(l->rows) > RUN_LIST_MAX)
        json_array_remove(l->rows, RUN_LIST_MAX);
}

json_t *kept_runs_list(const struct sandbox_root *root, const char *tenant,
                       const char *conversation, int64_t now_unix, struct err *e)
{
    struct listing l = {tenant, conversation, now_unix, json_array()};
    size_t i;
    json_t *row;

    if (record_each(root, tenant, listing_add, &l, e) < 0) {
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

static void sweep_one(void *ctx, int runs_fd, const char *name)
{
    const int64_t *now = ctx;
    char status[RUN_STATUS_MAX];
    struct stat st;
    AUTO_RUN_RECORD struct run_record r = {0};
    bool known = run_record_look(runs_fd, name, &r, status) == 0;

    /* A new record has no run.json yet, a torn one never gets it. */
    if (known ? *now >= run_record_expires(&r)
              : fstatat(runs_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                    *now - st.st_mtim.tv_sec > TORN_KEPT_S)
        run_record_remove_at(runs_fd, name);
}

/* List by list: one is bounded. */
void kept_runs_remove(const struct sandbox_root *root, const char *tenant, const char *conversation,
                      int64_t before)
{
    struct err ignored = ERR_INIT;
    size_t i, removed;
    json_t *run;

    do {
        json_auto_t *runs = kept_runs_list(root, tenant, conversation, before, &ignored);
        removed = 0;
        json_array_foreach(runs, i, run)
        {
            if (json_get_integer(run, "createdAt", before + 1) > before ||
                strcmp(json_get_string(run, "status"), "running") == 0)
                continue;
            run_record_remove(root, json_get_string(run, "runId"), tenant);
            removed++;
        }
    } while (removed == RUN_LIST_MAX);
}

void kept_runs_sweep(const struct sandbox_root *root, int64_t now_unix)
{
    struct err e = ERR_INIT;

    record_each(root, NULL, sweep_one, &now_unix, &e);
}

/* ---- the bound of a tenant ---- */

struct kept_run {
    char name[RUN_RECORD_NAME_LEN + 1];
    int64_t ended_ns;
    uint64_t bytes;
};

struct kept_runs {
    struct kept_run *items;
    size_t n;
    uint64_t bytes;
};

/* One that has no result yet stays: its supervisor is about to write there. */
static void gather_one(void *ctx, int runs_fd, const char *name)
{
    struct kept_runs *all = ctx;
    struct stat result, output;
    AUTO_FD int dir = openat(runs_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0 || fstatat(dir, RUN_RESULT_FILE, &result, AT_SYMLINK_NOFOLLOW) < 0 ||
        fstatat(dir, RUN_OUTPUT_FILE, &output, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    all->items = mem_resize(all->items, all->n + 1, sizeof *all->items);
    struct kept_run *one = &all->items[all->n++];
    *one = (struct kept_run){.ended_ns = clock_ns_of(result.st_mtim),
                             .bytes = (uint64_t)(result.st_size + output.st_size) + RUN_BYTES};
    memcpy(one->name, name, sizeof one->name);
    all->bytes += one->bytes;
}

static int older_first(const void *a, const void *b)
{
    int64_t x = ((const struct kept_run *)a)->ended_ns, y = ((const struct kept_run *)b)->ended_ns;

    return (x > y) - (x < y);
}

void kept_runs_bound(const struct sandbox_root *root, const char *tenant)
{
    struct kept_runs all = {0};
    struct err e = ERR_INIT;
    size_t gone = 0;
    uint64_t max = root->bounds.results;
    AUTO_FD int runs = openat(root->fd, RUN_RECORDS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (runs < 0 || record_each(root, tenant, gather_one, &all, &e) < 0)
        return;
    if (all.n > 0)
        qsort(all.items, all.n, sizeof *all.items, older_first);
    /* The newest stays, whatever its size. */
    for (; gone + 1 < all.n && (all.n - gone > KEPT_RUNS_MAX || (max > 0 && all.bytes > max));
         gone++) {
        all.bytes -= all.items[gone].bytes;
        run_record_remove_at(runs, all.items[gone].name);
    }
    if (gone > 0)
        log_debug("%zu results were removed for newer ones", gone);
    free(all.items);
}
