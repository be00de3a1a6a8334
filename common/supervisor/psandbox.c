#include "config.h"

#include "common/supervisor/psandbox_self.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/protocol/ops.h"
#include "common/protocol/wire.h"
#include "common/records/run_lock.h"
#include "common/records/run_record.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_AT_ONCE 16
#define DRAIN_MS       (3 * WAITER_PATIENCE_S * 1000)

void psandbox_stop(struct psandbox *s, const char *status, const char *reason)
{
    if (s->stop)
        return;
    s->stop = true;
    s->status = status;
    snprintf(s->reason, sizeof s->reason, "%s", reason);
}

/* ---- the record ---- */

static json_t *record_new(const struct psandbox *s)
{
    const struct broker_config *config = s->start->config;
    const char *kind = s->language ? "language" : "image";
    int64_t now = clock_unix_s();
    char id[PSANDBOX_ID_LEN + 1];

    psandbox_id(s->start->run_id, id);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "tenant",
                     s->tenant, "sandboxId", id, "status", "running", "conversationId",
                     s->conversation, kind, json_get_string(s->start->head, kind), "network",
                     json_get_bool(s->start->head, "network", 0), "session", s->keeps_variables,
                     "begunUs", (json_int_t)clock_unix_us(), "createdAt", (json_int_t)now,
                     "lastUsedAt", (json_int_t)now, "idleSeconds", (json_int_t)s->idle_ms / 1000,
                     "expiresAt", (json_int_t)(now + s->total_ms / 1000), "keepSeconds",
                     (json_int_t)config->limits.result_ttl_ms / 1000);
}

void psandbox_note(struct psandbox *s)
{
    struct err e = ERR_INIT;
    int64_t since_s = (clock_mono_ms() - s->used_ms) / 1000;

    json_object_set_new(s->record, "status",
                        json_string(s->stop     ? s->status
                                    : s->paused ? "paused"
                                                : "running"));
    json_object_set_new(s->record, "lastUsedAt", json_integer(clock_unix_s() - since_s));
    if (s->stop) {
        json_object_set_new(s->record, "endedAt", json_integer(clock_unix_s()));
        json_object_set_new(s->record, "reason", json_from_bytes(s->reason, strlen(s->reason)));
    }
    if (psandbox_record_write(s->start->root, s->start->run_id, s->record, &e) < 0)
        log_warn("sandbox %s: %s", s->start->run_id, e.text);
}

/* What its owner is told of it; new reference. */
static json_t *row_new(const struct psandbox *s)
{
    json_t *row = json_copy(s->record);

    psandbox_record_strip(row);
    return row;
}

/* ---- events ---- */

static bool turn(void *ctx)
{
    struct psandbox *s = ctx;
    struct epoll_event events[EVENTS_AT_ONCE];
    int n = epoll_wait(s->epoll_fd, events, EVENTS_AT_ONCE, 0);

    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr != s)
            psandbox_hear_waiter(s, events[i].data.ptr, events[i].events);
        else if (s->channel >= 0)
            psandbox_hear_channel(s);
    }
    psandbox_reap_waiters(s);
    return !s->stop;
}

/* ---- what is due ---- */

static struct deadline at(int64_t mono_ms)
{
    return (struct deadline){.at_ms = mono_ms};
}

static void tell_output(struct psandbox *s)
{
    s->tick = DEADLINE_NEVER;
    for (size_t i = 0; i < s->n_asks; i++) {
        struct psandbox_ask *a = s->asks[i];

        if (a->live && a->waiter && output_stream_send(a->live, a->waiter, false))
            s->tick = deadline_in_ms(OUTPUT_RING_TELL_MS);
    }
}

/* When this call wants to be seen to; what is due now is done. */
static struct deadline tend_ask(struct psandbox *s, struct psandbox_ask *a)
{
    struct deadline next = DEADLINE_NEVER;
    struct waiter *r = a->waiter;

    if (r && deadline_passed(r->gives_up))
        waiter_close(r);
    if (r && deadline_passed(r->rest_by))
        s->tick = deadline_in_ms(0);
    if (r)
        next = deadline_min(r->gives_up, r->rest_by);
    if (!a->begun)
        return next;
    if (deadline_passed(at(a->end.at_ms + PSANDBOX_HANGS_MS)))
        psandbox_stop(s, "lost", "its container does not answer any more");
    else if (deadline_passed(a->end) && a->why == PSANDBOX_NOT_KILLED)
        psandbox_kill(s, a, PSANDBOX_TIMED_OUT);
    return deadline_min(next, a->why ? at(a->end.at_ms + PSANDBOX_HANGS_MS) : a->end);
}

/* Nothing runs in it: how long may that last? */
static struct deadline tend_idle(struct psandbox *s)
{
    const int64_t pause_ms = (int64_t)s->start->config->persistent.pause_ms;
    bool pauses = pause_ms > 0 && !s->paused && !s->cannot_pause;
    char reason[80];

    if (psandbox_busy(s) > 0)
        return DEADLINE_NEVER;
    snprintf(reason, sizeof reason, "nobody used it for %" PRId64 " seconds", s->idle_ms / 1000);
    if (s->ending)
        psandbox_stop(s, "closed", "the server was stopped");
    else if (deadline_passed(at(s->used_ms + s->idle_ms)))
        psandbox_stop(s, "expired", reason);
    else if (pauses && deadline_passed(at(s->used_ms + pause_ms)))
        psandbox_pause(s);
    else if (pauses)
        return at(s->used_ms + (pause_ms < s->idle_ms ? pause_ms : s->idle_ms));
    return at(s->used_ms + s->idle_ms);
}

static struct deadline tend(struct psandbox *s)
{
    struct deadline total = at(s->began_ms + s->total_ms);
    char reason[80];

    if (deadline_passed(total)) {
        snprintf(reason, sizeof reason, "its time of %" PRId64 " seconds was over",
                 s->total_ms / 1000);
        psandbox_stop(s, "expired", reason);
    }
    if (deadline_passed(s->orphan))
        psandbox_stop(s, "closed", "the server was stopped");
    if (deadline_passed(s->redial))
        psandbox_redial(s);
    if (deadline_passed(s->tick))
        tell_output(s);
    struct deadline next = deadline_min(total, deadline_min(s->orphan, s->redial));
    for (size_t i = 0; i < s->n_asks; i++)
        next = deadline_min(next, tend_ask(s, s->asks[i]));
    next = deadline_min(next, tend_idle(s));
    next = deadline_min(next, s->tick);
    psandbox_reap_waiters(s);
    return s->unread ? deadline_in_ms(0) : next;
}

/* ---- a life ---- */

static void output_ring_on(struct psandbox *s)
{
    while (!s->stop) {
        struct deadline next = tend(s);
        struct pollfd p[2] = {{.fd = s->epoll_fd, .events = POLLIN},
                              {.fd = s->engine->ops->fd(s->engine),
                               .events = s->engine->ops->psandbox_waits(s->engine)}};

        if (s->stop)
            break;
        if (poll(p, 2, deadline_poll_ms(next)) < 0 && errno != EINTR)
            psandbox_stop(s, "lost", "its process cannot go on");
        if (p[0].revents)
            turn(s);
        if (p[1].revents || s->unread)
            psandbox_hear_engine(s);
    }
}

static void answer_creator(struct psandbox *s)
{
    json_t *row = row_new(s);

    json_object_del(row, "lastUsedAt");
    json_object_del(row, "session");
    psandbox_answer_all(s, PSANDBOX_CREATE, wire_result_new(row));
}

/* 0: it stays; -1: nothing came of it. */
static int get_going(struct psandbox *s, struct err *e)
{
    if (sandbox_open(s->start->root, s->tenant, s->conversation, &s->sandbox, e) < 0 ||
        psandbox_start_container(s, e) < 0)
        return -1;
    if (s->keeps_variables)
        psandbox_session_look_back(s);
    s->began_ms = s->used_ms = clock_mono_ms();
    s->record = record_new(s);
    psandbox_note(s);
    log_info("sandbox %s stays: %s", s->start->run_id, s->language ? s->language : "an image");
    answer_creator(s);
    psandbox_cell_next(s);
    s->unread = true; /* it may have said something already */
    return 0;
}

static int64_t wanted_ms(const struct psandbox_start *start, const char *name, uint64_t most)
{
    json_int_t wanted = json_get_integer(start->head, name, 0);

    return wanted > 0 && (uint64_t)wanted < most ? wanted : (int64_t)most;
}

static int begin(struct psandbox *s, struct err *e)
{
    const struct psandbox_start *start = s->start;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = s};
    struct engine_address address = start->config->engine;

    address.version = start->version;
    s->idle_ms = wanted_ms(start, "idleMs", start->config->persistent.idle_ms);
    s->total_ms = wanted_ms(start, "totalMs", start->config->persistent.total_ms);
    s->lock_fd = runlock_take(start->root->fd, start->run_id, e);
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->lock_fd < 0)
        return -1;
    if (s->epoll_fd < 0 || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->channel, &event) < 0)
        return err_errno(e, "a sandbox's events");
    s->waiters.epoll_fd = s->epoll_fd;
    s->attend = (struct engine_attend){.fd = s->epoll_fd, .turn = turn, .ctx = s};
    s->log = output_ring_new(OUTPUT_RING_KEEP);
    s->engine = docker_engine_new(&address, e);
    return s->engine ? 0 : -1;
}

/* Until all have taken their answers, or none is worth waiting for. */
static void drain(struct psandbox *s)
{
    struct deadline end = deadline_in_ms(DRAIN_MS);

    psandbox_reap_waiters(s);
    while (s->waiters.n > 0 && !deadline_passed(end)) {
        struct epoll_event event;

        if (epoll_wait(s->epoll_fd, &event, 1, deadline_poll_ms(end)) < 0 && errno != EINTR)
            break;
        turn(s);
        for (size_t i = 0; i < s->waiters.n; i++)
            if (deadline_passed(s->waiters.items[i]->gives_up))
                waiter_close(s->waiters.items[i]);
        psandbox_reap_waiters(s);
    }
}

/* Why those who still wait for something get nothing. */
static void set_end(const struct psandbox *s, const struct err *trouble, struct err *out)
{
    if (!s->record)
        *out = *trouble;
    else if (strcmp(s->status, "lost") == 0)
        err_set(out, ERR_LOST, "the sandbox is lost (%s), and what ran in it", s->reason);
    else
        psandbox_record_say_end(s->record, out);
}

static void answer_rest(struct psandbox *s, const struct err *trouble)
{
    static const enum psandbox_ask_kind kinds[] = {PSANDBOX_CREATE, PSANDBOX_EXEC,
                                                   PSANDBOX_SESSION};
    struct err e = ERR_INIT;

    set_end(s, trouble, &e);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        psandbox_answer_all(s, kinds[i], wire_error_new(&e));
}

static void put_away(struct psandbox *s)
{
    struct err e = ERR_INIT;

    psandbox_note(s);
    if (psandbox_record_write_log(s->start->root, s->start->run_id, s->log, &e) < 0)
        log_warn("sandbox %s: %s", s->start->run_id, e.text);
    log_info("sandbox %s is %s: %s", s->start->run_id, s->status, s->reason);
}

static void end(struct psandbox *s, const struct err *trouble)
{
    psandbox_stop(s, "closed", "it was not wanted any more");
    if (s->record)
        put_away(s);
    psandbox_say_ended(s);
    answer_rest(s, trouble);
    if (s->engine)
        s->engine->ops->finish(s->engine);
    psandbox_close_channel(s); /* who came late has asked something by now */
    answer_rest(s, trouble);
    if (s->record)
        psandbox_answer_all(s, PSANDBOX_CLOSE, wire_result_new(row_new(s)));
    drain(s);
}

static void clear(struct psandbox *s)
{
    if (s->engine)
        s->engine->ops->free(s->engine);
    sandbox_close(&s->sandbox);
    output_ring_free(s->log);
    json_decref(s->record);
    buf_clear(&s->session.control);
    auto_close_fd(&s->channel);
    auto_close_fd(&s->epoll_fd);
    if (s->lock_fd >= 0)
        runlock_remove(s->start->root->fd, s->start->run_id);
    auto_close_fd(&s->lock_fd);
}

static void refuse_first(int connection, const struct err *e)
{
    json_auto_t *refusal = wire_error_new(e);

    waiter_refuse(connection, refusal);
}

void psandbox_main(const struct psandbox_start *start)
{
    struct err e = ERR_INIT;
    struct psandbox s = {.start = start,
                         .tenant = json_get_string(start->head, "tenant"),
                         .conversation = json_get_string(start->head, "conversationId"),
                         .language = json_get_string(start->head, "language"),
                         .lock_fd = -1,
                         .epoll_fd = -1,
                         .channel = start->channel,
                         .session = {.control = BUF_INIT(4096)},
                         .sandbox = SANDBOX_INIT,
                         .tick = DEADLINE_NEVER,
                         .redial = DEADLINE_NEVER,
                         .orphan = DEADLINE_NEVER};

    s.keeps_variables = op_of(start->head) == OP_SESSION;
    if (begin(&s, &e) < 0) {
        log_error("a persistent sandbox cannot begin: %s", e.text);
        refuse_first(start->connection, &e);
        clear(&s);
        return;
    }
    psandbox_take(&s, start->head, start->connection);
    if (get_going(&s, &e) == 0)
        output_ring_on(&s);
    end(&s, &e);
    clear(&s);
}
