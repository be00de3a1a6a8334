/* All the records: a tenant's list, and the removal of what has expired. */
#include "config.h"

#include "common/records/run_record.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/records/run_lock.h"
#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SENSELESS_S 3600 /* how old a folder without a record gets */

/* Calls each with the id of every record's folder. */
static int for_each(const struct sandbox_root *root,
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

/* ---- a tenant's list ---- */

struct listed {
    char run_id[RUN_ID_LEN + 1];
    char status[RUN_STATUS_MAX];
    struct run_record record;
};

struct listing {
    const struct sandbox_root *root;
    const char *tenant, *conversation;
    int64_t now;
    struct listed *items;
    size_t n, cap;
};

static int newest_first(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;

    if (x->record.created != y->record.created)
        return x->record.created > y->record.created ? -1 : 1;
    return strcmp(x->run_id, y->run_id);
}

/* Forgets all but the newest, so that memory stays bounded whatever a tenant has. */
static void trim(struct listing *l)
{
    if (l->n > 0)
        qsort(l->items, l->n, sizeof *l->items, newest_first);
    while (l->n > RUN_LIST_MAX)
        run_record_clear(&l->items[--l->n].record);
}

static void list_one(void *ctx, int runs_fd, const char *run_id)
{
    struct listing *l = ctx;
    struct listed item = {.record = RUN_RECORD_INIT};

    (void)runs_fd;
    if (run_record_look(l->root, run_id, &item.record, item.status) < 0)
        return;
    if (strcmp(item.record.tenant, l->tenant) != 0 ||
        (l->conversation && strcmp(item.record.conversation, l->conversation) != 0) ||
        l->now >= run_record_expires(&item.record)) {
        run_record_clear(&item.record);
        return;
    }
    memcpy(item.run_id, run_id, sizeof item.run_id);
    if (l->n == l->cap && l->cap == 2 * RUN_LIST_MAX)
        trim(l);
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * RUN_LIST_MAX : RUN_LIST_MAX;
        l->items = mem_resize(l->items, l->cap, sizeof *l->items);
    }
    l->items[l->n++] = item;
}

json_t *run_record_row(const char *run_id, const struct run_record *r, const char *status)
{
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "runId", run_id, "conversationId",
                            r->conversation, "language", r->language, "status", status, "createdAt",
                            (json_int_t)r->created, "expiresAt", (json_int_t)run_record_expires(r));
    if (r->ended)
        json_object_set_new(row, "endedAt", json_integer(r->ended));
    return row;
}

/* Without a result it goes on as long as somebody holds its lock. */
static const char *status_of(const struct sandbox_root *root, const struct listed *item)
{
    if (*item->status)
        return item->status;
    return run_status_name(runlock_alive(root->fd, item->run_id) ? RUN_RUNNING : RUN_LOST);
}

json_t *run_record_list(const struct sandbox_root *root, const char *tenant,
                        const char *conversation, int64_t now_unix, struct err *e)
{
    struct listing l = {
        .root = root, .tenant = tenant, .conversation = conversation, .now = now_unix};
    json_t *rows = for_each(root, list_one, &l, e) < 0 ? NULL : json_array();

    trim(&l);
    for (size_t i = 0; i < l.n; i++) {
        struct listed *item = &l.items[i];
        if (rows)
            json_array_append_new(
                rows, run_record_row(item->run_id, &item->record, status_of(root, item)));
        run_record_clear(&item->record);
    }
    free(l.items);
    return rows;
}

/* ---- expiry ---- */

struct sweep {
    const struct sandbox_root *root;
    int64_t now;
};

/* A record that is being made has no run.json yet; what was torn has none for ever. */
static bool is_old(int runs_fd, const char *run_id, int64_t now)
{
    char name[RUN_ID_LEN + 3];
    struct stat st;

    memcpy(name, run_id, RUN_ID_LEN);
    memcpy(name + RUN_ID_LEN, ".d", 3);
    return fstatat(runs_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           now - st.st_mtim.tv_sec > SENSELESS_S;
}

static void sweep_one(void *ctx, int runs_fd, const char *run_id)
{
    const struct sweep *s = ctx;
    char status[RUN_STATUS_MAX];
    AUTO_RUN_RECORD struct run_record r = RUN_RECORD_INIT;
    bool known = run_record_look(s->root, run_id, &r, status) == 0;

    if (known ? s->now >= run_record_expires(&r) : is_old(runs_fd, run_id, s->now))
        run_record_remove(s->root, run_id);
}

void run_record_sweep(const struct sandbox_root *root, int64_t now_unix)
{
    struct sweep s = {root, now_unix};
    struct err e = ERR_INIT;

    for_each(root, sweep_one, &s, &e);
}
