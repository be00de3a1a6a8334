/* The processes that own a container: which one gets a call, what they say, and their ends. */
#include "config.h"

#include "common/broker/broker.h"

#include "common/base/crypto.h"
#include "common/base/log.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <string.h>
#include <sys/wait.h>

/* ---- what they say ---- */

/* The container of a run that has ended waits for its conversation's next one. */
static void keep_container(struct broker *b, struct child *child)
{
    struct err e = ERR_INIT;

    if (child_io_tell(child, "next", &e) < 0) {
        log_debug("a used container is gone: %s", e.text);
        return;
    }
    if (child->warm_dir[0]) /* it is a sandbox now, or was not used */
        warm_dir_remove(&b->root, child->warm_dir);
    child->warm_dir[0] = '\0';
    child->claimed = child->background = false;
    child->runs++;
    crypto_random_hex(RUN_ID_LEN / 2, child->run_id);
    child_set_state(child, CHILD_WIPING);
}

static void apply_event(struct broker *b, const struct child_event *event)
{
    struct child *child = event->child;

    switch (event->kind) {
    case CHILD_READY:
        child->tier = event->tier;
        child->memory_bytes = event->memory_bytes;
        pool_note_warm(b->pool, child);
        if (child->state == CHILD_STARTING || child->state == CHILD_WIPING)
            child_set_state(child, CHILD_WAITING);
        break;
    case CHILD_TOOK_RUN:
        if (child->state == CHILD_WAITING || child->state == CHILD_WIPING)
            child_set_state(child, CHILD_RUNNING);
        runs_taken(b, child);
        break;
    case CHILD_STARTED:
        if (child->state == CHILD_STARTING)
            child_set_state(child, CHILD_RUNNING);
        break;
    case CHILD_HAS_ENDED:
        tenant_limits_note_run(b, child->tenant, event->ran_ms);
        child_set_state(child, CHILD_ENDED);
        runs_taken(b, child);
        run_queue_release(b->queue, child, clock_mono_ms());
        if (child->kind == CHILD_SUPERVISOR)
            pool_note_end(b->pool, child, clock_mono_ms());
        if (event->reusable && !b->stopping && pool_may_reuse(b->pool, child, clock_mono_ms()))
            keep_container(b, child);
        break;
    case CHILD_DOUBTED:
        pool_note_doubt(b->pool);
        if (!child->claimed) /* else it starts another container for its run */
            child_io_release(&b->io, child);
        break;
    case CHILD_TELLS_RUNS:
        json_decref(child->calls);
        child->calls = event->runs;
        child->n_handed -= event->n_dealt < child->n_handed ? event->n_dealt : child->n_handed;
        child->used_us = clock_mono_us();
        tenant_limits_note_run(b, child->tenant, event->ran_ms);
        run_queue_place(b->queue);
        break;
    case CHILD_LEFT:
        if (child->pid == 0) /* else SIGCHLD tells of its end */
            supervisors_reap(b, child, 0);
        break;
    }
}

void supervisors_reap(struct broker *b, struct child *child, int status)
{
    struct child_event event;

    while (child_io_next_of(&b->io, child, &event)) /* what it sent last */
        apply_event(b, &event);
    bool over = child->state == CHILD_ENDED;
    if (WIFSIGNALED(status))
        log_error("run %s: its supervisor was killed by signal %d", child->run_id,
                  WTERMSIG(status));
    if (WIFSIGNALED(status) && child->claimed && !over)
        runs_count(child->language, run_status_name(RUN_LOST));
    if (child->kind == CHILD_SUPERVISOR && child->state == CHILD_RUNNING) /* it told nothing */
        tenant_limits_note_run(b, child->tenant, clock_mono_ms() - child->since_ms);
    if (WIFSIGNALED(status) || !over) /* it may have left its container */
        housekeeper_link_ask_sweep(&b->housekeeper);
    if (!over && child->kind == CHILD_SUPERVISOR && !child->claimed && child->runs == 0 &&
        !b->stopping)
        pool_note_failed_start(b->pool, child->language, clock_mono_ms());
    if (child->reattaching) /* calls wait for it */
        reattach_settle(&b->reattach, child);
    runs_lost(b, child);
    if (child->warm_dir[0])
        warm_dir_remove(&b->root, child->warm_dir); /* unless it has become a sandbox */
    child_io_close(&b->io, child);
    children_remove(b->children, child);
    run_queue_place(b->queue); /* what ran in a persistent sandbox is over */
}

void supervisors_tick(struct broker *b)
{
    for (struct child_event event; child_io_next(&b->io, &event);)
        apply_event(b, &event);
    if (b->io.has_cut)
        reattach_await(&b->reattach);
    b->io.has_cut = false;
}

void supervisors_catch_up(struct broker *b)
{
    child_io_poll(&b->io);
    supervisors_tick(b);
}

/* ---- calls ---- */

void supervisors_end_one(struct child *child, const char *why)
{
    struct err e = ERR_INIT;

    if (child_io_end(child, why, &e) < 0)
        log_debug("%s cannot be told to end: %s", child->run_id, e.text);
    child->ending = true;
}

static struct child *find_session(struct broker *b, const json_t *head)
{
    const char *language = json_get_string(head, "language");
    char sandbox_dir[SANDBOX_NAME_LEN + 1];
    struct err e = ERR_INIT;

    if (!language || !psandbox_session_known(language) ||
        sandbox_name_of(&b->root, head, sandbox_dir, &e) < 0)
        return NULL;
    const struct engine_runner *r = engine_runners_find(&b->housekeeper.runners.list, language);
    return children_find_session(b->children, sandbox_dir, language, r ? r->image : NULL);
}

static struct child *find_named(struct broker *b, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *psandbox_id = json_get_string(head, "sandboxId");
    const char *run_id = json_get_string(head, "runId");

    if (op_of(head) == OP_SESSION)
        return find_session(b, head);
    if (tenant && psandbox_id)
        return children_find_psandbox(b->children, tenant, psandbox_id);
    return tenant && run_id ? children_find_run(b->children, tenant, run_id) : NULL;
}

/* The one that the head names; NULL: it has ended, is another tenant's, or has not begun. */
static struct child *find_or_look(struct broker *b, const json_t *head)
{
    struct child *child = find_named(b, head);

    if (child)
        return child;
    reattach_look(&b->reattach);
    return find_named(b, head);
}

bool supervisors_await(struct broker *b, const json_t *head)
{
    const bool by_supervisor = op_row(op_of(head))->by == OP_BY_SUPERVISOR;
    const struct child *child = by_supervisor ? find_or_look(b, head) : NULL;

    return child && child->reattaching;
}

/* Another session takes its place (psandboxes_begin). */
static bool must_be_replaced(const struct child *child, const json_t *head)
{
    return op_of(head) == OP_SESSION && !wire_network_suits(head, child->session_network) &&
           child_is_idle_session(child);
}

bool supervisors_hand(struct broker *b, int fd, const json_t *head)
{
    struct child *child = find_or_look(b, head);
    const struct handed_call call = {.head = head, .connection = fd};
    struct err e = ERR_INIT;

    /* Of one that has ended there is a record, if any. */
    if (!child || !child_takes_calls(child) || must_be_replaced(child, head) ||
        child_io_hand(child, &call, &e) < 0)
        return false;
    if (op_of(head) == OP_EXEC || op_of(head) == OP_SESSION) {
        child->n_handed++;
        child->used_us = clock_mono_us();
    }
    return true;
}

/* ---- a broker before, and the one after ---- */

void supervisors_adopt(struct broker *b, int take_fd, const json_t *head)
{
    AUTO_FD int fd = take_fd;
    const char *call = json_get_string(head, "call");
    bool run = call && strcmp(call, op_name(OP_RUN)) == 0;
    const char *run_id = json_get_string(head, "runId");
    const bool known = run_id && children_find_id(b->children, run_id);
    struct child *child = call ? spawn_adopt_row(&b->spawner,
                                                 run ? CHILD_SUPERVISOR : CHILD_PSANDBOX, run_id,
                                                 head)
                               : NULL;
    const char *what = run ? "run" : "sandbox";
    struct err e = ERR_INIT;

    if (!child) {
        log_warn("a supervisor came back without saying whose it is");
        return;
    }
    child_io_close(&b->io, child); /* the one that it has left */
    if (child_io_open(&b->io, child, TAKE_FD(fd), &e) < 0) {
        log_error("%s %s: %s", what, child->run_id, e.text); /* it tries again */
        if (!known)
            children_remove(b->children, child);
        return;
    }
    log_info("%s %s goes on%s", what, child->run_id,
             child->pid ? "" : "; it began under another broker");
    if (run && !known)
        run_queue_adopt(b->queue, child);
    if (!run)
        reattach_settle(&b->reattach, child);
    if (child->ending) /* it may not have heard it */
        supervisors_end_one(child, NULL);
    if (!run && !op_is_of_this_version(head)) {
        log_info("sandbox %s is of another version, and ends when nothing runs in it",
                 child->run_id);
        supervisors_end_one(child, NULL);
    }
}

/* Runs go to the next broker, too, so that they count there, once no other can begin here: it would
 * wait for their places. */
static bool leaves_runs(struct broker *b)
{
    if (!b->relieved)
        return false;
    supervisors_catch_up(b); /* what has ended is noted here */
    return run_queue_is_empty(b->queue) && !b->held.first;
}

void supervisors_end(struct broker *b)
{
    const bool leaves = leaves_runs(b);

    b->reattach.check = DEADLINE_NEVER;
    for (struct child *c = NULL, *next = children_next(b->children, NULL); (c = next);) {
        bool psandbox = c->kind == CHILD_PSANDBOX;
        bool run = c->kind == CHILD_SUPERVISOR && c->claimed;

        next = children_next(b->children, c);
        if (c->reattaching || (b->relieved && psandbox) ||
            (leaves && run && c->state != CHILD_ENDED)) {
            child_io_close(&b->io, c);
            children_remove(b->children, c);
        } else if (child_takes_calls(c) && (psandbox || (b->ending && run))) {
            supervisors_end_one(c, NULL);
        }
    }
}
