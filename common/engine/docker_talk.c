#include "config.h"

#include "common/engine/docker_self.h"

#define READS_PER_TICK 16 /* between two checks of cancellation and deadline */
#define LAST_READS     64 /* of TALK_READ_BYTES, when time is up */
#define WRITE_BYTES    65536
/* Input, code and arguments that the container has not taken yet; and what is kept for more. */
#define PENDING_MAX  ((size_t)128 * 1024 * 1024)
#define PENDING_KEPT ((size_t)128 * 1024)

void talk_begin(struct talk *t, struct docker_stream *take_stream, int protocol)
{
    *t = (struct talk){.stream = take_stream,
                       .protocol = protocol,
                       .input = BUF_INIT(PENDING_MAX),
                       .in = BUF_INIT(ENTRY_FRAME_MAX + 2 * TALK_READ_BYTES),
                       .complaint = BUF_INIT(TALK_COMPLAINT_MAX)};
}

void talk_clear(struct talk *t)
{
    docker_stream_free(t->stream);
    buf_clear(&t->input);
    buf_clear(&t->in);
    buf_clear(&t->complaint);
    *t = (struct talk){0};
}

/* Keeps the beginning of the entry program's stderr, as one line of ASCII. */
static void complaint_add(struct talk *t, const char *data, size_t len)
{
    for (size_t i = 0; i < len && t->complaint.len < TALK_COMPLAINT_MAX; i++) {
        unsigned char c = (unsigned char)data[i];

        if (c < 0x80)
            buf_add_char(&t->complaint, c < ' ' || c == 0x7f ? ' ' : (char)c);
    }
}

static bool take_payload(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    struct talk *t = ctx;

    if (t->protocol == 0)
        return t->sink->output(t->sink->ctx, stream, data, len);
    if (stream == ENGINE_STDOUT)
        buf_add(&t->in, data, len);
    else
        complaint_add(t, data, len);
    return true;
}

/* Receives one portion. *out_more: there may be another at once. */
static enum talk_end talk_receive(struct talk *t, bool *out_more)
{
    const struct engine_sink out = {take_payload, t};
    char chunk[TALK_READ_BYTES];
    size_t len;
    enum stream_got got = docker_stream_recv(t->stream, chunk, sizeof chunk, &len);
    enum frame_push push;

    *out_more = got == STREAM_DATA;
    if (got == STREAM_END)
        return TALK_ENDED;
    if (got == STREAM_NOTHING_NOW)
        return TALK_GOING_ON;
    if (t->n_ids == 0)
        t->warm_bytes += len;
    push = docker_frame_push(&t->frames, chunk, len, &out, &t->why);
    return push == FRAME_MORE ? TALK_GOING_ON : push == FRAME_STOP ? TALK_STOPPED : TALK_GARBLED;
}

void talk_send(struct talk *t)
{
    while (t->sent < t->input.len) {
        size_t left = t->input.len - t->sent;
        ssize_t n = docker_stream_send(t->stream, t->input.data + t->sent,
                                       left < WRITE_BYTES ? left : WRITE_BYTES);

        if (n == 0)
            return;
        if (n < 0) {
            /* A program that does not read its input to the end is no error, but one that got
             * nothing of itself is lost. */
            t->lost = t->sent <= t->run_at;
            break;
        }
        t->sent += (size_t)n;
    }
    if (t->input.cap > PENDING_KEPT)
        buf_clear(&t->input);
    else
        buf_reset(&t->input);
    t->sent = 0;
}

/* ---- commands and events ---- */

size_t talk_find(const struct talk *t, uint32_t id)
{
    size_t i = 0;

    while (i < t->n_ids && t->ids[i] != id)
        i++;
    return i;
}

int talk_command(struct talk *t, const struct engine_command *command, struct err *e)
{
    if (t->n_ids == ENGINE_COMMANDS_MAX)
        return err_set(e, ERR_LIMIT, "%d commands run in this container already",
                       ENGINE_COMMANDS_MAX);
    if (entry_write_command(t->last_id + 1, command, &t->input, e) < 0)
        return -1;
    t->ids[t->n_ids++] = ++t->last_id;
    return 0;
}

/* The container is not as it was before its run. */
static int take_doubt(struct talk *t, const struct engine_event *ev)
{
    buf_reset(&t->complaint);
    complaint_add(t, ev->data, ev->len);
    return err_set(&t->why, ERR_REFUSED, "%s", buf_str(&t->complaint));
}

/* An event is about a command that runs, or tells a higher tier. */
static int check_event(struct talk *t, const struct engine_event *ev)
{
    size_t at = talk_find(t, ev->id);

    if (ev->kind == ENGINE_EVENT_FAILED && ev->id == 0 && t->next)
        return take_doubt(t, ev);
    if (ev->kind == ENGINE_EVENT_TIER && (ev->id != 0 || ev->wait.tier <= t->wait.tier))
        return err_set(&t->why, ERR_PROTOCOL, "the container sent the same tier again");
    if (ev->kind == ENGINE_EVENT_TIER) {
        t->wait = ev->wait;
        t->next = false;
    } else if (at == t->n_ids) {
        return err_set(&t->why, ERR_PROTOCOL,
                       "the container sent a frame of a command that does not run");
    }
    if (ev->kind == ENGINE_EVENT_ENDED || ev->kind == ENGINE_EVENT_FAILED)
        t->ids[at] = t->ids[--t->n_ids];
    return 0;
}

/* The next event of what has been received: 1, or 0: more bytes are needed, -1: talk.why. */
static int next_event(struct talk *t, struct engine_event *out)
{
    ssize_t n = entry_frame_take(buf_str(&t->in) + t->taken, t->in.len - t->taken, out, &t->why);

    if (n > 0) {
        t->taken += (size_t)n;
        return check_event(t, out) < 0 ? -1 : 1;
    }
    buf_drop_front(&t->in, t->taken);
    t->taken = 0;
    return (int)n;
}

enum talk_end talk_read(struct talk *t, struct engine_event *out)
{
    enum talk_end end = TALK_GOING_ON;
    bool more = true;
    int r;

    talk_send(t);
    while ((r = next_event(t, out)) == 0 && end == TALK_GOING_ON && more)
        end = talk_receive(t, &more);
    if (r == 0)
        *out = (struct engine_event){.kind = ENGINE_EVENT_NOTHING};
    return r < 0 ? TALK_GARBLED : r > 0 ? TALK_GOING_ON : end;
}

enum talk_end talk_look(struct talk *t)
{
    enum talk_end end = TALK_GOING_ON;
    struct engine_event ev = {.kind = ENGINE_EVENT_TIER};

    /* What a plain image prints before it has its code is output. */
    while (t->protocol != 0 && end == TALK_GOING_ON && ev.kind != ENGINE_EVENT_NOTHING) {
        end = talk_read(t, &ev);
        if (t->warm_bytes > TALK_WARM_MAX) {
            err_set(&t->why, ERR_PROTOCOL,
                    "the runner's entry program sends too much before it has a program");
            return TALK_GARBLED;
        }
    }
    return end;
}

/* ---- a run ---- */

int talk_next(struct talk *t, struct err *e)
{
    if (!t->stream || t->protocol == 0 || t->last_id == 0 || t->n_ids > 0 || t->next)
        return err_set(e, ERR_LOST, "there is no container that a run has left");
    entry_write('N', 0, "", 0, &t->input);
    if (!buf_ok(&t->input))
        return err_set(e, ERR_LIMIT, "the container does not take its input");
    t->wait = (struct engine_wait){0};
    t->warm_bytes = 0;
    t->next = true;
    talk_send(t);
    return 0;
}

static enum talk_end run_event(struct talk *t, const struct engine_event *ev)
{
    enum engine_stream stream = ev->kind == ENGINE_EVENT_OUT ? ENGINE_STDOUT : ENGINE_STDERR;
    struct engine_outcome before = t->outcome;

    switch (ev->kind) {
    case ENGINE_EVENT_BEGUN:
        t->outcome.warm = ev->outcome.warm;
        return TALK_GOING_ON;
    case ENGINE_EVENT_OUT:
    case ENGINE_EVENT_ERR:
        return t->sink->output(t->sink->ctx, stream, ev->data, ev->len) ? TALK_GOING_ON
                                                                        : TALK_STOPPED;
    case ENGINE_EVENT_FAILED:
        buf_reset(&t->complaint);
        complaint_add(t, ev->data, ev->len);
        return TALK_LOST;
    case ENGINE_EVENT_ENDED:
        t->outcome = ev->outcome;
        t->outcome.started_us = before.started_us;
        t->outcome.warm = before.warm;
        return TALK_REPORTED;
    default:
        return TALK_GOING_ON;
    }
}

/* Receives what is there, at most reads portions. */
static enum talk_end receive_some(struct talk *t, int reads, bool *out_more)
{
    enum talk_end end = TALK_GOING_ON;
    struct engine_event ev;
    int r = 0;

    *out_more = true;
    while (end == TALK_GOING_ON && *out_more && reads-- > 0) {
        end = talk_receive(t, out_more);
        while (t->protocol != 0 && (end == TALK_GOING_ON || end == TALK_ENDED) &&
               (r = next_event(t, &ev)) > 0) {
            enum talk_end event_end = run_event(t, &ev);

            end = event_end == TALK_GOING_ON ? end : event_end;
        }
        if (r < 0)
            return TALK_GARBLED;
    }
    return end;
}

/* Time is up, or the caller has cancelled: what has arrived by now still counts, even the report.
 */
static enum talk_end receive_last(struct talk *t, enum talk_end end)
{
    bool more;
    enum talk_end last = receive_some(t, LAST_READS, &more);

    return last == TALK_REPORTED ? last : end;
}

/* Sends of the run what the connection takes. */
static void send_run(struct talk *t)
{
    talk_send(t);
    if (t->protocol == 0 && t->input.len == 0 && !t->input_over) {
        t->input_over = true;
        docker_stream_finish_input(t->stream);
    }
}

static enum talk_end talk_to_end(struct talk *t, struct docker_attend *attend, struct deadline d)
{
    bool more = true;

    for (;;) {
        struct pollfd p = {.fd = docker_stream_fd(t->stream), .events = POLLIN};
        enum talk_end end;

        send_run(t);
        if (t->lost)
            return TALK_LOST;
        if (t->sent < t->input.len)
            p.events |= POLLOUT;
        if (docker_attend_poll(attend, &p, more ? 0 : deadline_poll_ms(d)) < 0)
            return TALK_ENDED;
        if (attend->cancelled)
            return receive_last(t, TALK_CANCELLED);
        if (deadline_passed(d))
            return receive_last(t, TALK_DEADLINE);
        end = receive_some(t, READS_PER_TICK, &more);
        if (end != TALK_GOING_ON)
            return end;
    }
}

int talk_run(struct talk *t, const struct engine_command *run, const struct engine_sink *sink,
             struct docker_attend *attend, struct deadline d, enum talk_end *out, struct err *e)
{
    t->run_at = t->input.len;
    t->sink = sink;
    t->wait = (struct engine_wait){0};
    if (t->protocol == 0)
        buf_add(&t->input, run->code, run->code_len);
    else if (talk_command(t, run, e) < 0)
        return -1;
    /* The program's time begins here: a slow start of the container is not its fault. */
    if (run->timeout_ms > 0)
        d = deadline_min(d, deadline_in_ms((int64_t)run->timeout_ms));
    t->outcome = (struct engine_outcome){.exit_code = -1, .started_us = clock_mono_us()};
    *out = talk_to_end(t, attend, d);
    t->outcome.ended_us = clock_mono_us();
    return 0;
}
