#include "config.h"

#include "common/broker/run_queue.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/broker/broker.h"
#include "common/protocol/wire.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define TRIES_MAX 2 /* supervisors that may die before they took a run up */

enum stage {
    STAGE_QUEUED, /* waits for its place */
    STAGE_PLACED, /* waits for a supervisor */
    STAGE_GIVEN,  /* waits for its supervisor to begin */
};

struct queued_run {
    struct queued_run *next;
    int fd;
    json_t *head;
    struct run_request request; /* points into head, as the next */
    struct run_options options;
    char sandbox_dir[SANDBOX_NAME_LEN + 1];
    enum stage stage;
    uint64_t round; /* of starts, once placed */
    bool passed_by; /* in this turn of the loop */
    unsigned tries;
    int64_t asked_ms;
    struct deadline end;     /* of its patience, while it waits for a place or a start */
    struct loop_watch watch; /* of its caller's leaving, meanwhile */
};

const json_t *claim_head(const struct queued_run *c)
{
    return c->head;
}

int claim_connection(const struct queued_run *c)
{
    return c->fd;
}

size_t run_queue_length(const struct broker *b)
{
    return admission_waiting(b->admission) + b->run_queue.n_starting;
}

bool run_queue_uses_sandbox(const struct broker *b, const char *sandbox_dir)
{
    const struct queued_run *c = b->run_queue.first;

    while (c && strcmp(c->sandbox_dir, sandbox_dir) != 0)
        c = c->next;
    return c != NULL;
}

static void set_stage(struct broker *b, struct queued_run *c, enum stage stage)
{
    b->run_queue.n_starting -= c->stage == STAGE_PLACED;
    b->run_queue.n_starting += stage == STAGE_PLACED;
    c->stage = stage;
}

/* It has a place. Starts go round the tenants, too: there are fewer of them at once than places. */
static void place(struct broker *b, struct queued_run *c)
{
    c->round = b->run_queue.round;
    for (const struct queued_run *o = b->run_queue.first; o; o = o->next)
        if (o->stage == STAGE_PLACED && o->round >= c->round &&
            strcmp(o->request.tenant, c->request.tenant) == 0)
            c->round = o->round + 1;
    set_stage(b, c, STAGE_PLACED);
}

/* Closes its connection, unless that was taken. Its place is somebody else's business. */
static void forget(struct broker *b, struct queued_run *c)
{
    struct queued_run **at = &b->run_queue.first;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    set_stage(b, c, STAGE_GIVEN);
    loop_remove(&b->loop, &c->watch);
    auto_close_fd(&c->fd);
    json_decref(c->head);
    free(c);
}

/* ---- places ---- */

static void hand_out_places(struct broker *b)
{
    for (struct queued_run *c; (c = admission_next(b->admission));)
        place(b, c);
}

static void give_place_back(struct broker *b, const struct queued_run *c)
{
    admission_release(b->admission, c->request.tenant, c->sandbox_dir, c->options.background,
                      clock_mono_ms());
    hand_out_places(b);
}

/* Whatever it has or waits for. */
static void leave_line(struct broker *b, struct queued_run *c)
{
    if (c->stage == STAGE_QUEUED)
        admission_forget(b->admission, c);
    else
        give_place_back(b, c);
}

void run_queue_release(struct broker *b, struct child *child)
{
    if (!child->placed)
        return;
    child->placed = false;
    admission_release(b->admission, child->tenant, child->sandbox_dir, child->background,
                      clock_mono_ms());
    hand_out_places(b);
}

/* ---- answers ---- */

static void refuse(struct broker *b, struct queued_run *c, const struct err *why)
{
    reply_send_error(TAKE_FD(c->fd), why);
    forget(b, c);
}

static void refuse_busy(struct broker *b, struct queued_run *c, size_t position, int64_t retry_ms)
{
    struct err e;
    err_set(&e, ERR_BUSY,
            "%zu programs are running and %zu wait: there is no room for more; try again in %g s",
            admission_running(b->admission), run_queue_length(b), (double)retry_ms / 1000.0);
    json_t *reply = wire_error_new(&e);
    json_t *error = json_object_get(reply, "error");
    json_object_set_new(error, "retryAfterMs", json_integer(retry_ms));
    json_object_set_new(error, "position", json_integer((json_int_t)position));
    reply_send(TAKE_FD(c->fd), reply);
    forget(b, c);
}

/* ---- waiting ---- */

/* The caller has left. One that wants its run all the same stays in line: what it said is still
 * there to be read. */
static void hear_caller(void *owner, void *item, uint32_t events)
{
    struct broker *b = owner;
    struct queued_run *c = item;
    (void)events;
    loop_remove(&b->loop, &c->watch);
    if (c->options.detach)
        return;
    leave_line(b, c);
    forget(b, c);
}

static void begin_waiting(struct broker *b, struct queued_run *c, size_t position)
{
    struct err e = ERR_INIT;
    json_auto_t *word = json_pack("{s:{s:I}}", "queued", "position", (json_int_t)position);
    if (wire_post(c->fd, word, -1, &e) < 0 ||
        loop_add(&b->loop, &c->watch, c->fd, EPOLLRDHUP, hear_caller, c, &e) < 0)
        log_debug("a run that waits: %s", e.text); /* its supervisor will notice, too */
}

/* ---- supervisors ---- */

static bool sandbox_exists(const struct broker *b, const char *sandbox_dir)
{
    return faccessat(b->root.fd, sandbox_dir, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* From now on the child is on this run. */
static void enter_books(struct broker *b, struct queued_run *c, struct child *child)
{
    child->claimed = true;
    child->placed = true;
    child->claim = c;
    child->background = c->options.background;
    memcpy(child->sandbox_dir, c->sandbox_dir, sizeof child->sandbox_dir);
    child_set_owner(child, c->request.tenant, c->request.conversation);
    loop_remove(&b->loop, &c->watch);
    set_stage(b, c, STAGE_GIVEN);
    if (c->round > b->run_queue.round)
        b->run_queue.round = c->round;
    c->tries++;
}

/* One that waits. false: there is none. */
static bool give_warm(struct broker *b, struct queued_run *c, const struct pool_want *want)
{
    struct err e = ERR_INIT;
    for (struct child *child; (child = pool_choose(b->pool, b->children, want));) {
        int64_t now = clock_mono_ms();
        if (child_hand(child, "claim", c->head, now - c->asked_ms, c->fd, &e) == 0) {
            pool_note_claim(b->pool, want, child, now);
            *(child->state == CHILD_WAITING ? &b->tally.hits : &b->tally.misses) += 1;
            enter_books(b, c, child);
            return true;
        }
        log_debug("a container that waited is gone: %s", e.text);
        child_io_release(b, child);
    }
    return false;
}

/* A new one. */
static void give_new(struct broker *b, struct queued_run *c, const struct pool_want *want)
{
    struct err e = ERR_INIT;
    int64_t now = clock_mono_ms();
    const struct spawn spawn = {.runner = want->runner,
                                .queued_run = c,
                                .network = want->network,
                                .queue_ms = now - c->asked_ms};
    pool_note_claim(b->pool, want, NULL, now);
    b->tally.misses++;
    struct child *child = spawn_supervisor(b, &spawn, &e);
    if (child) {
        enter_books(b, c, child);
        return;
    }
    log_error("%s", e.text);
    give_place_back(b, c);
    refuse(b, c, &e);
}

static bool is_start_of(const struct child *child, const void *tenant)
{
    return child->state == CHILD_STARTING && child->claimed && strcmp(child->tenant, tenant) == 0;
}

/* Starts share the processors: a tenant that is not alone leaves half of them to the others,
 * so that a crowd of its calls does not slow down every single one of theirs. */
static bool may_start(const struct broker *b, const struct queued_run *c)
{
    const char *tenant = c->request.tenant;
    if (!pool_may_start(b->pool, b->children))
        return false;
    if (!admission_contended(b->admission, tenant, clock_mono_ms()))
        return true;
    size_t share = b->config->pool.starts_max / 2;
    return children_count(b->children, is_start_of, tenant) < (share ? share : 1);
}

/* A supervisor for one that has a place; it stays STAGE_PLACED when none may be started now. */
static void give(struct broker *b, struct queued_run *c)
{
    struct err e = ERR_INIT;
    const struct pool_want want = {.runner = broker_runner(b, c->request.language, &e),
                                   .sandbox_dir = c->sandbox_dir,
                                   .known = sandbox_exists(b, c->sandbox_dir),
                                   .network = run_needs_new(&c->request),
                                   .wants = c->options.wants};
    if (!want.runner) { /* the engine or the image went meanwhile */
        give_place_back(b, c);
        refuse(b, c, &e);
        return;
    }
    if (!give_warm(b, c, &want) && may_start(b, c))
        give_new(b, c, &want);
}

/* ---- the life of a queued_run ---- */

static int decode(struct broker *b, struct queued_run *c, struct err *e)
{
    const struct broker_limits *limits = &b->config->limits;
    if (wire_run_head_decode(c->head, &c->request, &c->options, e) < 0 ||
        sandbox_name(&b->root, c->request.tenant, c->request.conversation, c->sandbox_dir, e) < 0 ||
        !broker_runner(b, c->request.language, e))
        return -1;
    /* Who asked for an answer at once does not wait for ever. */
    uint64_t patience = c->options.wait_ms;
    if (c->options.background && patience == 0)
        patience = limits->wait_ms;
    if (patience > 0)
        c->end = deadline_in_ms(patience > INT32_MAX ? INT32_MAX : (int64_t)patience);
    return 0;
}

static void ask_for_place(struct broker *b, struct queued_run *c)
{
    const struct admission_want want = {.tenant = c->request.tenant,
                                        .sandbox_dir = c->sandbox_dir,
                                        .background = c->options.background,
                                        .now_ms = c->asked_ms,
                                        .ticket = c};
    size_t position;
    int64_t retry_ms;
    switch (admission_ask(b->admission, &want, &position, &retry_ms)) {
    case ADMISSION_GO:
        place(b, c);
        give(b, c);
        break;
    case ADMISSION_WAIT:
        begin_waiting(b, c, position);
        break;
    case ADMISSION_BUSY:
        refuse_busy(b, c, position, retry_ms);
        break;
    }
}

void run_queue_begin(struct broker *b, int take_fd, const json_t *head)
{
    struct err e = ERR_INIT;
    struct queued_run *c = mem_alloc(sizeof *c);
    *c = (struct queued_run){.fd = take_fd,
                             .head = json_deep_copy(head),
                             .stage = STAGE_QUEUED,
                             .asked_ms = clock_mono_ms(),
                             .end = DEADLINE_NEVER,
                             .watch = LOOP_WATCH_INIT};
    struct queued_run **at = &b->run_queue.first;
    while (*at)
        at = &(*at)->next;
    *at = c;
    if (decode(b, c, &e) < 0)
        refuse(b, c, &e);
    else
        ask_for_place(b, c);
}

static void refuse_impatient(struct broker *b)
{
    for (struct queued_run *c = b->run_queue.first, *next; c; c = next) {
        next = c->next;
        c->passed_by = false;
        if (c->stage == STAGE_GIVEN || !deadline_passed(c->end))
            continue;
        leave_line(b, c);
        refuse_busy(b, c, admission_waiting(b->admission), admission_retry_ms(b->admission));
    }
}

static struct queued_run *next_placed(const struct run_queue *run_queue)
{
    struct queued_run *found = NULL;
    for (struct queued_run *c = run_queue->first; c; c = c->next)
        if (c->stage == STAGE_PLACED && !c->passed_by && (!found || c->round < found->round))
            found = c;
    return found;
}

void run_queue_tick(struct broker *b)
{
    refuse_impatient(b);
    for (struct queued_run *c; (c = next_placed(&b->run_queue));) {
        c->passed_by = true; /* unless it is given one now */
        give(b, c);
    }
}

struct deadline run_queue_next(const struct run_queue *run_queue)
{
    struct deadline next = DEADLINE_NEVER;
    for (const struct queued_run *c = run_queue->first; c; c = c->next)
        if (c->stage != STAGE_GIVEN)
            next = deadline_min(next, c->end);
    return next;
}

void run_queue_begun(struct broker *b, struct child *child)
{
    if (child->claim)
        forget(b, child->claim);
    child->claim = NULL;
}

/* A message begins with its length, whose first byte is small; text inside it is not. So what is
 * next to be read is the body from its start, and the caller is still there. */
static bool body_unread(int fd)
{
    unsigned char first;
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    return recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) == 1 && first <= WIRE_MESSAGE_MAX >> 24 &&
           poll(&p, 1, 0) == 0;
}

bool run_queue_child_lost(struct broker *b, struct child *child)
{
    struct queued_run *c = TAKE_PTR(child->claim);
    if (!c)
        return false;
    if (c->tries >= TRIES_MAX || !body_unread(c->fd)) {
        forget(b, c); /* the end of the connection says it all */
        return false;
    }
    log_info("run %s: its supervisor ended before it began; another gets it", child->run_id);
    place(b, c);
    return true;
}
