#include "config.h"

#include "common/engine/docker_self.h"

#include "common/protocol/entry_record.h"

#define WRITE_BYTES 65536
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

static void take_payload(void *ctx, enum engine_stream stream, const char *data, size_t len)
{
    struct talk *t = ctx;

    if (t->protocol == 0) /* as the frames that an entry program would send */
        entry_record_add(stream == ENGINE_STDOUT ? 'O' : 'E', t->run_id, data, len, &t->in);
    else if (stream == ENGINE_STDOUT)
        buf_add(&t->in, data, len);
    else
        complaint_add(t, data, len);
}

/* Receives one portion. *out_more: there may be another at once. */
static enum talk_end talk_receive(struct talk *t, bool *out_more)
{
    const struct frame_sink out = {take_payload, t};
    char chunk[TALK_READ_BYTES];
    size_t len;
    enum stream_got got = docker_stream_recv(t->stream, chunk, sizeof chunk, &len);
    *out_more = got == STREAM_DATA;
    if (got == STREAM_END)
        return TALK_ENDED;
    if (got == STREAM_NOTHING_NOW)
        return TALK_GOING_ON;
    if (t->n_ids == 0)
        t->warm_bytes += len;
    if (docker_frame_push(&t->frames, chunk, len, &out, &t->why) == 0 &&
        t->warm_bytes <= TALK_WARM_MAX)
        return TALK_GOING_ON;
    if (t->why.kind == ERR_NONE)
        err_set(&t->why, ERR_PROTOCOL,
                "the runner's entry program sends too much before it has a program");
    return TALK_GARBLED;
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
            t->lost = t->run_id != 0 && t->sent <= t->run_at;
            break;
        }
        t->sent += (size_t)n;
    }
    if (t->input.cap > PENDING_KEPT)
        buf_clear(&t->input);
    else
        buf_reset(&t->input);
    t->sent = 0;
    if (t->protocol == 0 && t->run_id != 0 && !t->input_over) {
        t->input_over = true;
        docker_stream_finish_input(t->stream);
    }
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
    size_t at = t->input.len;

    if (t->n_ids == ENGINE_COMMANDS_MAX)
        return err_set(e, ERR_LIMIT, "%d commands run in this container already",
                       ENGINE_COMMANDS_MAX);
    if (t->protocol == 0)
        entry_records_join(command->streams, command->streams_len, 'C', &t->input);
    else if (entry_write_command(t->last_id + 1, command, &t->input, e) < 0)
        return -1;
    t->ids[t->n_ids++] = ++t->last_id;
    if (!command->run)
        return 0;
    t->run_id = t->last_id;
    t->run_at = at;
    t->run_by = command->timeout_ms > 0 ? deadline_in_ms((int64_t)command->timeout_ms)
                                        : DEADLINE_NEVER;
    t->run_step = RUN_HANDED;
    t->wait = (struct engine_wait){0};
    return 0;
}

/* The container is not as it was before its run, or did not start it. */
static int take_failure(struct talk *t, const struct engine_event *ev)
{
    buf_reset(&t->complaint);
    complaint_add(t, ev->data, ev->len);
    t->lost = ev->id != 0;
    return t->lost ? -1 : err_set(&t->why, ERR_REFUSED, "%s", buf_str(&t->complaint));
}

/* Is that event of the run due? A program that began while libraries are loaded would have what its
 * container has for that. */
static bool take_step(struct talk *t, enum engine_event_kind kind)
{
    const enum run_step step = t->run_step;

    switch (kind) {
    case ENGINE_EVENT_LOADING:
        t->run_step = RUN_LOADS;
        return step == RUN_HANDED;
    case ENGINE_EVENT_LOADED:
        t->run_step = RUN_HELD;
        return step == RUN_HANDED || step == RUN_LOADS;
    case ENGINE_EVENT_BEGUN:
        t->run_step = RUN_BEGUN;
        return step == RUN_HANDED || step == RUN_GOES;
    case ENGINE_EVENT_ENDED:
        return true;
    default:
        return step != RUN_LOADS && step != RUN_HELD;
    }
}

/* A container of several languages tells its tier again when it has another template's memory. */
static bool tier_is_due(const struct talk *t, const struct engine_event *ev)
{
    return ev->id == 0 &&
           (ev->wait.tier > t->wait.tier || (t->protocol == 3 && ev->wait.tier == t->wait.tier));
}

/* An event is about a command that runs, or tells a higher tier. */
static int check_event(struct talk *t, const struct engine_event *ev)
{
    size_t at = talk_find(t, ev->id);

    if (ev->kind == ENGINE_EVENT_FAILED && ev->id == t->run_id && (ev->id != 0 || t->next))
        return take_failure(t, ev);
    if (ev->kind == ENGINE_EVENT_TIER && !tier_is_due(t, ev))
        return err_set(&t->why, ERR_PROTOCOL, "the container sent the same tier again");
    if (ev->kind == ENGINE_EVENT_TIER) {
        t->wait = ev->wait;
        t->next = false;
    } else if (at == t->n_ids) {
        return err_set(&t->why, ERR_PROTOCOL,
                       "the container sent a frame of a command that does not run");
    } else if (ev->id == t->run_id && !take_step(t, ev->kind)) {
        return err_set(&t->why, ERR_PROTOCOL, "the container sent a frame of its run out of turn");
    }
    if (ev->kind != ENGINE_EVENT_ENDED && ev->kind != ENGINE_EVENT_FAILED)
        return 0;
    t->ids[at] = t->ids[--t->n_ids];
    if (ev->id == t->run_id)
        t->run_id = 0;
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
    if (t->lost)
        return TALK_ENDED;
    if (t->protocol == 0 && t->run_id == 0) /* what a plain image prints before is output, too */
        return TALK_GOING_ON;
    while ((r = next_event(t, out)) == 0 && end == TALK_GOING_ON && more)
        end = talk_receive(t, &more);
    if (r == 0)
        *out = (struct engine_event){.kind = ENGINE_EVENT_NOTHING};
    return r < 0 ? TALK_GARBLED : r > 0 ? TALK_GOING_ON : end;
}

int talk_go(struct talk *t, uint32_t id, struct err *e)
{
    if (!t->stream || id != t->run_id || t->run_step != RUN_HELD)
        return err_set(e, ERR_LOST, "there is no run that is held");
    entry_record_add('G', id, "", 0, &t->input);
    if (!buf_ok(&t->input))
        return err_set(e, ERR_LIMIT, "the container does not take its input");
    t->run_step = RUN_GOES;
    talk_send(t);
    return 0;
}

/* ---- between two runs ---- */

int talk_next(struct talk *t, struct err *e)
{
    if (!t->stream || t->protocol == 0 || t->last_id == 0 || t->n_ids > 0 || t->next)
        return err_set(e, ERR_LOST, "there is no container that a run has left");
    entry_record_add('N', 0, "", 0, &t->input);
    if (!buf_ok(&t->input))
        return err_set(e, ERR_LIMIT, "the container does not take its input");
    t->wait = (struct engine_wait){0};
    t->warm_bytes = 0;
    t->next = true;
    talk_send(t);
    return 0;
}
