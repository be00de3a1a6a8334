#include "config.h"

#include "common/broker/prune.h"

#include "common/base/log.h"
#include "common/base/metrics.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/tree.h"
#include "common/sandbox/state/expiry_clock.h"
#include "common/sandbox/state/retention.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/state/unsaved.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define FIRST_MS    1000   /* after the start: removes what an earlier broker left, too */
#define RETRY_MS    600000 /* after a failure */
#define MESSAGE_MAX 4096

/* ---- one sandbox ---- */

static int check_unused(const struct prune *p, const char *sandbox_dir, struct err *e)
{
    for (const struct child *c = NULL; (c = children_next(p->spawner->children, c));) {
        if (c->kind == CHILD_JOB || c->state == CHILD_ENDED || child_is_warm(c) ||
            strcmp(c->sandbox_dir, sandbox_dir) != 0)
            continue;
        if (c->kind == CHILD_SUPERVISOR)
            return err_set(e, ERR_BUSY,
                           "a program of this conversation is still running (run %s): wait for "
                           "its end, or cancel it",
                           c->run_id);
        return err_set(e, ERR_BUSY, "a persistent sandbox of this conversation is still open: %s",
                       c->ending ? "it is about to end; try again" : "close it first");
    }
    if (run_queue_uses_sandbox(p->queue, sandbox_dir))
        return err_set(e, ERR_BUSY,
                       "a run of this conversation is queued: wait for its end, or cancel its "
                       "call");
    return 0;
}

/* A warm container on it is released: it would serve the next run from .trash. */
static int sandbox_take_away(struct prune *p, const char *sandbox_dir, const char *to,
                             char out[TRASH_NAME_LEN + 1], struct err *e)
{
    const struct sandbox_root *root = p->spawner->root;

    if (check_unused(p, sandbox_dir, e) < 0)
        return -1;
    warm_pool_release(p->warm_pool, sandbox_dir);
    if (sandbox_retire(root, sandbox_dir, to, out, e) < 0)
        return -1;
    state_forget(root, sandbox_dir);
    unsaved_note(root, sandbox_dir);
    return 0;
}

json_t *prune_conversation(struct prune *p, const json_t *head, struct err *e)
{
    const struct sandbox_root *root = p->spawner->root;
    char sandbox_dir[SANDBOX_NAME_LEN + 1], staged[TRASH_NAME_LEN + 1];

    if (sandbox_name_of(root, head, sandbox_dir, e) < 0)
        return NULL;
    bool expired = state_take_expired(root, sandbox_dir) > 0;
    if (sandbox_take_away(p, sandbox_dir, STAGING_DIR, staged, e) < 0) {
        if (e->kind == ERR_NOT_FOUND)
            err_set(e, ERR_NOT_FOUND, "conversationId: there is nothing to delete%s",
                    expired ? "; the files of this conversation have expired before" : "");
        return NULL;
    }
    json_t *work = json_deep_copy(head);
    json_object_set_new(work, "staged", json_string(staged));
    json_object_set_new(work, "at", json_integer(clock_unix_s()));
    return work;
}

static int exchange(struct prune *p, const char *sandbox_dir, const char *staged, struct err *e)
{
    if (check_unused(p, sandbox_dir, e) < 0)
        return -1;
    warm_pool_release(p->warm_pool, sandbox_dir);
    return sandbox_exchange(p->spawner->root, sandbox_dir, staged, e);
}

int prune_replace(struct prune *p, const char *sandbox_dir, const char *staged, struct err *e)
{
    const struct sandbox_root *root = p->spawner->root;
    AUTO_FD int staging = openat(root->fd, STAGING_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char trash[TRASH_NAME_LEN + 1];
    struct err why = ERR_INIT;
    int rc = exchange(p, sandbox_dir, staged, e);

    if (trash_take(root, staging, staged, trash, &why) < 0)
        log_warn("%s", why.text);
    p->trash = true;
    return rc;
}

int prune_exchange(struct prune *p, const json_t *head, struct err *e)
{
    const struct sandbox_root *root = p->spawner->root;
    const char *staged = json_get_string(head, "staged");
    char sandbox_dir[SANDBOX_NAME_LEN + 1];

    if (sandbox_name_of(root, head, sandbox_dir, e) < 0 ||
        exchange(p, sandbox_dir, staged ? staged : "", e) < 0)
        return -1;
    unsaved_note(root, sandbox_dir);
    return 0;
}

/* ---- the finder's process ---- */

/* For the status and the metrics: what is known without another count. */
static void note_sizes(const struct retention *all)
{
    uint64_t bytes = all->beside_bytes;

    for (size_t i = 0; i < all->n; i++)
        bytes += all->items[i].bytes;
    metrics_set(METRIC_DISK_USED, bytes);
    metrics_set(METRIC_CONVERSATIONS, all->n);
}

static int find_expired(const struct sandbox_root *root, int fd, int64_t unix_s, struct err *e)
{
    const struct expiry_look look = {.mono_s = clock_mono_ms() / 1000, .unix_s = unix_s};
    const int64_t now = expiry_now(root, look);
    const int64_t slack = state_fresh_s(root);
    AUTO_RETENTION struct retention all = {0};

    if (retention_gather(root, &all, e) < 0)
        return -1;
    note_sizes(&all);
    size_t n = retention_plan(&all, &root->bounds, slack, now);
    for (size_t i = 0; i < n; i++) {
        json_auto_t *message = json_pack("{s:s, s:I}", "expired", all.items[i].name, "lastUsed",
                                         (json_int_t)all.items[i].last_used);
        if (wire_send(fd, message, -1, e) < 0)
            return -1;
    }
    int64_t next = retention_next_s(&all, n, &root->bounds, slack, now);
    json_auto_t *message = json_pack("{s:I}", "next", (json_int_t)next);
    return wire_send(fd, message, -1, e);
}

/* When the main process has closed its end it has removed what it wanted to: the records are tidied
 * then. */
static void run_finder(void *ctx, int fd)
{
    const struct sandbox_root *root = ctx;
    int64_t now = clock_unix_s();
    struct err e = ERR_INIT;

    (void)!nice(10);
    if (find_expired(root, fd, now, &e) < 0)
        log_warn("cannot find what has expired: %s", e.text);
    json_auto_t *end = wire_recv(fd, NULL, DEADLINE_NEVER, &e);
    state_tidy(root, now);
}

/* ---- and the main process's side of it ---- */

/* The finder knows nothing of what is in use: its decision holds if nothing has happened since. */
static void remove_expired(struct prune *p, const char *sandbox_dir, int64_t last_used)
{
    const struct sandbox_root *root = p->spawner->root;
    char trash[TRASH_NAME_LEN + 1];
    struct err e = ERR_INIT;

    if (!state_name_ok(sandbox_dir) || state_last_used(root, sandbox_dir) != last_used)
        return;
    if (sandbox_take_away(p, sandbox_dir, TRASH_DIR, trash, &e) < 0) {
        log_debug("the files of a conversation are kept: %s", e.text);
        return;
    }
    state_mark_expired(root, sandbox_dir);
    p->n_expired++;
    p->trash = true;
}

static void on_message(void *owner, void *item, uint32_t events)
{
    struct prune *p = item;
    bool ended;
    json_auto_t *message = helper_next_message(&p->finder, &ended);
    const char *expired = message ? json_get_string(message, "expired") : NULL;

    (void)owner;
    (void)events;
    if (expired)
        remove_expired(p, expired, json_get_integer(message, "lastUsed", -1));
    if (expired || (!message && !ended))
        return;
    if (p->n_expired > 0)
        log_info("the files of %zu conversations have expired", p->n_expired);
    p->next = deadline_in_ms(message ? 1000 * json_get_integer(message, "next", 600) : RETRY_MS);
    p->trash = true; /* also what an earlier process left half-way */
    p->finder.pid = 0;
    helper_close(&p->finder);
}

static void run_emptier(void *ctx, int fd)
{
    (void)fd;
    (void)!nice(19);
    trash_empty(ctx);
}

static int prune_start_helper(struct prune *p, struct helper *helper,
                              const struct helper_spawn *spawn)
{
    struct err e = ERR_INIT;

    if (helper_start(helper, p->spawner, spawn, &e) < 0) {
        log_error("%s: %s", spawn->role, e.text);
        return -1;
    }
    return 0;
}

void prune_tick(struct prune *p)
{
    void *root = (void *)(uintptr_t)p->spawner->root;
    const struct helper_spawn empty = {
        .role = "trash", .main = run_emptier, .ctx = root, .awaited = true};
    const struct helper_spawn find = {.role = "retention",
                                      .main = run_finder,
                                      .ctx = root,
                                      .on_message = on_message,
                                      .item = p,
                                      .awaited = true};

    if (p->trash && p->emptier.pid == 0) {
        p->trash = false;
        prune_start_helper(p, &p->emptier, &empty);
    }
    if (!deadline_passed(p->next))
        return;
    p->n_expired = 0;
    p->next = prune_start_helper(p, &p->finder, &find) < 0 ? deadline_in_ms(RETRY_MS)
                                                           : DEADLINE_NEVER;
}

void prune_reap(struct prune *p, const struct child *child)
{
    if (child->pid == p->emptier.pid)
        p->emptier.pid = 0;
    if (child->limit == JOB_LIMIT_DELETION) /* it has moved there what it had counted */
        p->trash = true;
}

/* ---- the whole ---- */

void prune_init(struct prune *p, const struct spawner *spawner, struct warm_pool *warm_pool,
                const struct run_queue *queue)
{
    *p = (struct prune){.spawner = spawner,
                        .warm_pool = warm_pool,
                        .queue = queue,
                        .finder = HELPER_INIT(MESSAGE_MAX),
                        .emptier = HELPER_INIT(0),
                        .next = deadline_in_ms(FIRST_MS)};
}

void prune_end(struct prune *p)
{
    helper_end(&p->finder);
    helper_end(&p->emptier); /* the next broker goes on with it */
    p->next = DEADLINE_NEVER;
}
