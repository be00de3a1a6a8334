#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS_AT_ONCE 16
#define LINGER_MS      100

/* ---- waiting ---- */

int supervisor_watch(struct supervisor *s, int fd, uint64_t name, struct err *e)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = name};

    if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return err_errno(e, "epoll_ctl");
    return 0;
}

int supervisor_open_events(struct supervisor *s, struct err *e)
{
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (s->epoll_fd < 0 || s->timer_fd < 0)
        return err_errno(e, "a supervisor's events");
    s->waiters.epoll_fd = s->epoll_fd;
    s->attend = (struct engine_attend){.fd = s->epoll_fd, .turn = supervisor_tick, .ctx = s};
    if (supervisor_watch(s, s->timer_fd, SUPERVISOR_TIMER, e) < 0)
        return -1;
    return supervisor_watch(s, s->channel, SUPERVISOR_CHANNEL, e);
}

static void ring_at(struct supervisor *s, struct deadline d)
{
    if (d.at_ms == s->alarm.at_ms || (d.at_ms < 0 && s->alarm.at_ms < 0))
        return;
    /* All zero would switch it off instead of ringing at once. */
    struct itimerspec when = {
        .it_value = {.tv_sec = d.at_ms / 1000, .tv_nsec = d.at_ms % 1000 * 1000000 + 1}};
    if (d.at_ms < 0)
        when = (struct itimerspec){0};
    timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
    s->alarm = d;
}

static void hear_timer(struct supervisor *s)
{
    uint64_t times;

    if (read(s->timer_fd, &times, sizeof times) > 0)
        s->alarm = DEADLINE_NEVER;
}

/* ---- waiters ---- */

static bool wants_output(const struct waiter *r)
{
    return r->fd >= 0 && !r->answered && (r->live || r->since_given);
}

static void hear_waiter(struct supervisor *s, struct waiter *r, uint32_t events)
{
    if (r->fd < 0)
        return;
    if (events & EPOLLOUT)
        waiter_flush(r);
    if (wants_output(r) && r->out.len == 0) /* there may be more for it by now */
        s->tick = deadline_min(s->tick, deadline_in_ms(OUTPUT_RING_TELL_MS));
    if (r->fd < 0 || !(events & ~(uint32_t)EPOLLOUT))
        return;
    enum waiter_word word = waiter_hear(r);
    bool asks = r->kind == WAITER_CALLER && !r->answered;
    if (word == WAITER_SAYS_CANCEL && asks)
        s->cancelled = s->stop = true;
    if (word == WAITER_LEFT)
        waiter_close(r);
    if (word != WAITER_LEFT || !asks || s->cancelled)
        return;
    if (s->options.fleeting)
        s->cancelled = s->stop = true;
    else /* an caller that leaves without a word is to find the result later */
        supervisor_keep(s);
}

void supervisor_tell_live(struct supervisor *s, struct waiter *r, bool over)
{
    if (output_stream_send(s->live, r, over))
        s->tick = deadline_min(s->tick, deadline_in_ms(OUTPUT_RING_TELL_MS));
}

/* A poll is answered when it can be told something new: a moment later, since more may come. */
static void tell_poll(struct supervisor *s, struct waiter *r)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * 4);
    uint64_t next, skipped;

    r->rest_by = DEADLINE_NEVER;
    output_ring_text(s->live, r->since, 4, false, &text, &next, &skipped);
    if (next > r->since)
        supervisor_answer_running(s, r);
}

static void tell_output(struct supervisor *s)
{
    for (size_t i = 0; i < s->waiters.n; i++) {
        struct waiter *r = s->waiters.items[i];

        if (!wants_output(r))
            continue;
        if (r->live)
            supervisor_tell_live(s, r, false);
        else if (r->since < output_ring_total(s->live) && r->rest_by.at_ms < 0)
            r->rest_by = deadline_in_ms(OUTPUT_RING_TELL_MS);
    }
}

static void tend_waiter(struct supervisor *s, struct waiter *r)
{
    if (deadline_passed(r->gives_up)) {
        log_debug("run %s: a waiter takes nothing and is dropped", s->start->run_id);
        waiter_close(r);
    }
    if (deadline_passed(r->rest_by) && r->live)
        supervisor_tell_live(s, r, false);
    else if (deadline_passed(r->rest_by))
        tell_poll(s, r);
    if (!deadline_passed(r->answer_by))
        return;
    if (r->kind == WAITER_CALLER)
        supervisor_keep(s);
    supervisor_answer_running(s, r);
}

void supervisor_tend(struct supervisor *s)
{
    if (s->began_ms)
        supervisor_note_use(s);
    if (deadline_passed(s->tick)) {
        s->tick = DEADLINE_NEVER;
        s->quiet = deadline_in_ms(OUTPUT_RING_TELL_MS);
        tell_output(s);
    }
    if (deadline_passed(s->redial))
        supervisor_redial(s);
    struct deadline next = deadline_min(s->tick, s->redial);
    for (size_t i = 0; i < s->waiters.n; i++) {
        struct waiter *r = s->waiters.items[i];

        tend_waiter(s, r);
        next = deadline_min(next,
                            deadline_min(r->gives_up, deadline_min(r->rest_by, r->answer_by)));
    }
    ring_at(s, deadline_min(next, s->tick));
}

bool supervisor_tick(void *ctx)
{
    struct supervisor *s = ctx;
    struct epoll_event events[EVENTS_AT_ONCE];
    int n = epoll_wait(s->epoll_fd, events, EVENTS_AT_ONCE, 0);

    for (int i = 0; i < n; i++) {
        if (events[i].data.u64 == SUPERVISOR_TIMER)
            hear_timer(s);
        else if (events[i].data.u64 != SUPERVISOR_CHANNEL)
            hear_waiter(s, events[i].data.ptr, events[i].events);
        else if (s->channel >= 0)
            supervisor_hear_channel(s);
    }
    supervisor_tend(s);
    waiters_reap(&s->waiters);
    return !s->stop;
}

void supervisor_ring(struct supervisor *s)
{
    ring_at(s, deadline_in_ms(0));
}

bool supervisor_take_output(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    struct supervisor *s = ctx;

    output_ring_add(s->live, stream, data, len);
    for (size_t i = 0; s->tick.at_ms < 0 && i < s->waiters.n; i++)
        if (wants_output(s->waiters.items[i])) {
            s->tick = deadline_passed(s->quiet) ? deadline_in_ms(0) : s->quiet;
            ring_at(s, deadline_min(s->alarm, s->tick));
        }
    return run_capture_add(&s->capture, stream, data, len);
}

void supervisor_linger(struct supervisor *s)
{
    struct deadline end = deadline_in_ms(LINGER_MS);

    while (!deadline_passed(end)) {
        struct epoll_event event;

        if (epoll_wait(s->epoll_fd, &event, 1, deadline_poll_ms(end)) > 0)
            supervisor_tick(s);
    }
}

void supervisor_drain(struct supervisor *s)
{
    struct deadline end = deadline_in_ms(3 * WAITER_PATIENCE_S * 1000);

    supervisor_tend(s);
    waiters_reap(&s->waiters);
    while (s->waiters.n > 0 && !deadline_passed(end)) {
        struct epoll_event event;

        if (epoll_wait(s->epoll_fd, &event, 1, deadline_poll_ms(end)) < 0 && errno != EINTR)
            break;
        supervisor_tick(s);
    }
    waiters_clear(&s->waiters);
}
