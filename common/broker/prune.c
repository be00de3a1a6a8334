#include "config.h"

#include "common/broker/prune.h"

#include "common/base/log.h"
#include "common/broker/broker.h"
#include "common/broker/prune_pass.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/trash.h"
#include "common/sandbox/state/state.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define FIRST_MS 1000   /* after the start: what an earlier broker left is swept then */
#define AGAIN_MS 600000 /* when a look failed */
#define WORD_MAX 16384

/* ---- one sandbox ---- */

static bool waits_there(const struct child *c, const char *sandbox_dir)
{
    return c->kind == CHILD_SUPERVISOR && !c->claimed && strcmp(c->sandbox_dir, sandbox_dir) == 0;
}

static bool works_there(const struct child *c, const char *sandbox_dir)
{
    return c->kind != CHILD_JOB && c->state != CHILD_ENDED && !waits_there(c, sandbox_dir) &&
           strcmp(c->sandbox_dir, sandbox_dir) == 0;
}

static int check_unused(const struct broker *b, const char *sandbox_dir, struct err *e)
{
    for (const struct child *c = NULL; (c = children_next(b->children, c));) {
        if (!works_there(c, sandbox_dir))
            continue;
        if (c->kind == CHILD_SUPERVISOR)
            return err_set(e, ERR_BUSY,
                           "a program of this conversation is still running (run %s): wait for "
                           "its end, or end it with cancel_run",
                           c->run_id);
        return err_set(e, ERR_BUSY,
                       "a persistent sandbox of this conversation is still there: close it first");
    }
    if (run_queue_uses_sandbox(b, sandbox_dir))
        return err_set(e, ERR_BUSY,
                       "a program of this conversation waits for its turn: wait for its end, or "
                       "leave its call");
    return 0;
}

/* A container that waits on it would serve the next run from what is trash by then. */
static void release_warm(struct broker *b, const char *sandbox_dir)
{
    for (struct child *c = NULL; (c = children_next(b->children, c));)
        if (waits_there(c, sandbox_dir) && c->channel >= 0)
            child_io_release(b, c);
    pool_forget_sandbox(b->pool, sandbox_dir);
}

static int take_away(struct broker *b, const char *sandbox_dir, char trash[TRASH_NAME_LEN + 1],
                     struct err *e)
{
    if (check_unused(b, sandbox_dir, e) < 0)
        return -1;
    release_warm(b, sandbox_dir);
    if (sandbox_retire(&b->root, sandbox_dir, trash, e) < 0)
        return -1;
    state_forget(&b->root, sandbox_dir);
    return 0;
}

/* ---- by its owner ---- */

static int take_owners(struct broker *b, const json_t *head, char trash[TRASH_NAME_LEN + 1],
                       struct err *e)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *conversation = json_get_string(head, "conversationId");
    char sandbox_dir[SANDBOX_NAME_LEN + 1];

    if (!tenant || !conversation)
        return err_set(e, ERR_INVALID, "tenant or conversation is missing");
    if (sandbox_name(&b->root, tenant, conversation, sandbox_dir, e) < 0)
        return -1;
    child_io_catch_up(b, CHILD_SUPERVISOR); /* what has ended does not use it any more */
    child_io_catch_up(b, CHILD_PSANDBOX);
    bool expired = state_take_expired(&b->root, sandbox_dir) > 0;
    if (take_away(b, sandbox_dir, trash, e) == 0)
        return 0;
    if (e->kind == ERR_NOT_FOUND)
        err_set(e, ERR_NOT_FOUND, "conversationId: there is nothing to delete%s",
                expired ? "; the files of this conversation have expired before" : "");
    return -1;
}

void prune_begin(struct broker *b, int take_fd, const json_t *head)
{
    AUTO_FD int fd = take_fd;
    char trash[TRASH_NAME_LEN + 1];
    struct err e = ERR_INIT;

    if (take_owners(b, head, trash, &e) < 0) {
        reply_send_error(TAKE_FD(fd), &e);
        return;
    }
    json_auto_t *work = json_deep_copy(head);
    json_object_set_new(work, "trash", json_string(trash));
    json_object_set_new(work, "at", json_integer(clock_unix_s()));
    if (spawn_job(b, fd, work, -1, &e) < 0)
        log_error("%s", e.text);
}

/* ---- by the bounds ---- */

/* The decision was made a moment ago by somebody without books: it holds if nothing happened. */
static void purge_one(struct broker *b, const json_t *item)
{
    const char *sandbox_dir = json_get_string(item, "name");
    char trash[TRASH_NAME_LEN + 1];
    struct err e = ERR_INIT;

    if (!sandbox_dir || !state_name_ok(sandbox_dir) ||
        state_last_used(&b->root, sandbox_dir) != json_get_integer(item, "lastUsed", -1))
        return;
    if (take_away(b, sandbox_dir, trash, &e) < 0) {
        log_debug("a conversation's files stay: %s", e.text);
        return;
    }
    state_mark_expired(&b->root, sandbox_dir);
    b->prune.n_gone++;
    b->prune.trash = true;
}

static void leave(struct broker *b)
{
    loop_remove(&b->loop, &b->prune.watch);
    auto_close_fd(&b->prune.fd);
    sock_inbox_clear(&b->prune.inbox);
    b->prune.pid = 0;
}

static void look_is_over(struct broker *b, int64_t next_ms)
{
    if (b->prune.n_gone > 0)
        log_info("the files of %zu conversations have expired", b->prune.n_gone);
    b->prune.next = deadline_in_ms(next_ms);
    b->prune.trash = true; /* also what an earlier process left half-way */
    leave(b);
}

static void hear(void *owner, void *item, uint32_t events)
{
    struct broker *b = owner;
    struct prune *r = item;
    struct err e = ERR_INIT;
    const json_t *one;
    size_t i;

    (void)events;
    int whole = sock_inbox_take(&r->inbox, r->fd, &e);
    if (whole == 0)
        return;
    json_auto_t *message = whole > 0 ? wire_parse(&r->inbox.message, &e) : NULL;
    json_array_foreach(json_object_get(message, "purge"), i, one) purge_one(b, one);
    if (!json_object_get(message, "purge"))
        look_is_over(b, message ? 1000 * json_get_integer(message, "next", 600) : AGAIN_MS);
}

static void be_the_look(struct broker *b, int fd)
{
    retention_pass(&b->root, fd);
}

static int start_look(struct broker *b, struct err *e)
{
    struct prune *r = &b->prune;
    pid_t pid = spawn_helper(b, "retention", be_the_look, &r->fd, e);

    if (pid < 0)
        return -1;
    children_add(b->children, CHILD_JOB)->pid = pid;
    r->pid = pid;
    r->n_gone = 0;
    r->next = DEADLINE_NEVER;
    return loop_add(&b->loop, &r->watch, r->fd, EPOLLIN, hear, r, e);
}

/* ---- .trash ---- */

static void be_the_emptier(struct broker *b, int fd)
{
    (void)fd;
    (void)!nice(19); /* nobody waits for it */
    trash_empty(&b->root);
}

/* One at a time: what comes while it is at work is for the next. */
static void empty_trash(struct broker *b)
{
    struct prune *r = &b->prune;
    struct err e = ERR_INIT;
    AUTO_FD int fd = -1;

    if (!r->trash || r->emptier > 0)
        return;
    r->trash = false;
    pid_t pid = spawn_helper(b, "trash", be_the_emptier, &fd, &e);
    if (pid < 0) {
        log_error("what was deleted stays in .trash until the next look: %s", e.text);
        return;
    }
    children_add(b->children, CHILD_JOB)->pid = pid;
    r->emptier = pid;
}

void prune_reap(struct broker *b, const struct child *child)
{
    if (child->pid == b->prune.emptier)
        b->prune.emptier = 0;
    if (child->limit == JOB_LIMIT_DELETION) /* it has counted what goes */
        b->prune.trash = true;
}

/* ---- the whole ---- */

void prune_init(struct prune *r)
{
    *r = (struct prune){.fd = -1,
                        .watch = LOOP_WATCH_INIT,
                        .inbox = SOCK_INBOX_INIT(WORD_MAX),
                        .next = deadline_in_ms(FIRST_MS)};
}

void prune_tick(struct broker *b)
{
    struct err e = ERR_INIT;

    empty_trash(b);
    if (!deadline_passed(b->prune.next))
        return;
    if (start_look(b, &e) < 0) {
        log_error("retention: %s", e.text);
        b->prune.next = deadline_in_ms(AGAIN_MS);
    }
}

struct deadline prune_next(const struct prune *r)
{
    return r->next;
}

void prune_end(struct broker *b)
{
    if (b->prune.pid > 0)
        kill(b->prune.pid, SIGTERM);
    if (b->prune.emptier > 0)
        kill(b->prune.emptier, SIGTERM); /* the next broker goes on with it */
    b->prune.emptier = 0;
    b->prune.next = DEADLINE_NEVER;
    leave(b);
}
