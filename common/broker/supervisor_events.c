#include "config.h"

#include "common/broker/supervisor_self.h"

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
    s->readers.epoll_fd = s->epoll_fd;
    s->attend = (struct engine_attend){.fd = s->epoll_fd, .turn = supervisor_turn, .ctx = s};
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

/* ---- readers ---- */

static bool wants_output(const struct reader *r)
{
    return r->fd >= 0 && !r->answered && (r->live || r->since_given);
}

static void hear_reader(struct supervisor *s, struct reader *r, uint32_t events)
{
    if (r->fd < 0)
        return;
    if (events & EPOLLOUT)
        reader_flush(r);
    if (wants_output(r) && r->out.len == 0) /* there may be more for it by now */
        s->tick = deadline_min(s->tick, deadline_in_ms(LIVE_TELL_MS));
    if (r->fd < 0 || !(events & ~(uint32_t)EPOLLOUT))
        return;
    enum reader_word word = reader_hear(r);
    bool asks = r->kind == READER_ASKER && !r->answered;
    if (word == READER_SAYS_CANCEL && asks)
        s->cancelled = s->stop = true;
    if (word == READER_LEFT)
        reader_close(r);
    if (word != READER_LEFT || !asks || s->cancelled)
        return;
    if (s->manner.fleeting)
        s->cancelled = s->stop = true;
    else /* an asker that leaves without a word is to find the result later */
        supervisor_keep(s);
}

void supervisor_tell_live(struct supervisor *s, struct reader *r, bool over)
{
    if (live_tell(s->live, r, over))
        s->tick = deadline_min(s->tick, deadline_in_ms(LIVE_TELL_MS));
}

/* A poll is answered when it can be told something new: a moment later, since more may come. */
static void tell_poll(struct supervisor *s, struct reader *r)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * 4);
    uint64_t next, skipped;

    r->rest_by = DEADLINE_NEVER;
    live_text(s->live, r->since, 4, false, &text, &next, &skipped);
    if (next > r->since)
        supervisor_answer_running(s, r);
}

static void tell_output(struct supervisor *s)
{
    for (size_t i = 0; i < s->readers.n; i++) {
        struct reader *r = s->readers.items[i];

        if (!wants_output(r))
            continue;
        if (r->live)
            supervisor_tell_live(s, r, false);
        else if (r->since < live_total(s->live) && r->rest_by.at_ms < 0)
            r->rest_by = deadline_in_ms(LIVE_TELL_MS);
    }
}

static void tend_reader(struct supervisor *s, struct reader *r)
{
    if (deadline_passed(r->gives_up)) {
        log_debug("run %s: a reader takes nothing and is dropped", s->start->run_id);
        reader_close(r);
    }
    if (deadline_passed(r->rest_by) && r->live)
        supervisor_tell_live(s, r, false);
    else if (deadline_passed(r->rest_by))
        tell_poll(s, r);
    if (!deadline_passed(r->answer_by))
        return;
    if (r->kind == READER_ASKER)
        supervisor_keep(s);
    supervisor_answer_running(s, r);
}

void supervisor_tend(struct supervisor *s)
{
    if (s->began_ms)
        supervisor_note_use(s);
    if (deadline_passed(s->tick)) {
        s->tick = DEADLINE_NEVER;
        s->quiet = deadline_in_ms(LIVE_TELL_MS);
        tell_output(s);
    }
    if (deadline_passed(s->redial))
        supervisor_redial(s);
    struct deadline next = deadline_min(s->tick, s->redial);
    for (size_t i = 0; i < s->readers.n; i++) {
        struct reader *r = s->readers.items[i];

        tend_reader(s, r);
        next = deadline_min(next,
                            deadline_min(r->gives_up, deadline_min(r->rest_by, r->answer_by)));
    }
    ring_at(s, deadline_min(next, s->tick));
}

bool supervisor_turn(void *ctx)
{
    struct supervisor *s = ctx;
    struct epoll_event events[EVENTS_AT_ONCE];
    int n = epoll_wait(s->epoll_fd, events, EVENTS_AT_ONCE, 0);

    for (int i = 0; i < n; i++) {
        if (events[i].data.u64 == SUPERVISOR_TIMER)
            hear_timer(s);
        else if (events[i].data.u64 != SUPERVISOR_CHANNEL)
            hear_reader(s, events[i].data.ptr, events[i].events);
        else if (s->channel >= 0)
            supervisor_hear_channel(s);
    }
    supervisor_tend(s);
    readers_bury(&s->readers);
    return !s->stop;
}

void supervisor_ring(struct supervisor *s)
{
    ring_at(s, deadline_in_ms(0));
}

bool supervisor_take_output(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    struct supervisor *s = ctx;

    live_add(s->live, stream, data, len);
    for (size_t i = 0; s->tick.at_ms < 0 && i < s->readers.n; i++)
        if (wants_output(s->readers.items[i])) {
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
            supervisor_turn(s);
    }
}

void supervisor_drain(struct supervisor *s)
{
    struct deadline end = deadline_in_ms(3 * READER_PATIENCE_S * 1000);

    supervisor_tend(s);
    readers_bury(&s->readers);
    while (s->readers.n > 0 && !deadline_passed(end)) {
        struct epoll_event event;

        if (epoll_wait(s->epoll_fd, &event, 1, deadline_poll_ms(end)) < 0 && errno != EINTR)
            break;
        supervisor_turn(s);
    }
    readers_clear(&s->readers);
}
