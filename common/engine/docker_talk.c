#include "config.h"

#include "common/engine/docker_self.h"

#define READS_PER_TICK 16 /* between two checks of cancellation and deadline */
#define LAST_READS     64 /* of TALK_READ_BYTES, when time is up */
#define WRITE_BYTES    65536

void talk_clear(struct talk *t)
{
    docker_stream_free(t->stream);
    buf_clear(&t->input);
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

static enum frame_push take_payload(void *ctx, enum engine_stream stream, const char *data,
                                    size_t len, struct err *e)
{
    struct talk *t = ctx;

    if (t->protocol == 0)
        return t->sink->output(t->sink->ctx, stream, data, len) ? FRAME_MORE : FRAME_STOP;
    if (stream == ENGINE_STDOUT && t->raw) {
        buf_add(t->raw, data, len);
        return FRAME_MORE;
    }
    if (stream == ENGINE_STDOUT)
        return entry_frame_push(&t->entry, data, len, t->sink, e);
    complaint_add(t, data, len);
    return FRAME_MORE;
}

enum talk_end talk_receive(struct talk *t, bool *out_more)
{
    const struct docker_frame_out out = {.payload = take_payload, .ctx = t};
    char chunk[TALK_READ_BYTES];
    size_t len;
    enum stream_got got = docker_stream_recv(t->stream, chunk, sizeof chunk, &len);

    *out_more = got == STREAM_DATA;
    if (got == STREAM_END)
        return TALK_ENDED;
    if (got == STREAM_NOTHING_NOW)
        return TALK_GOING_ON;
    if (!t->handed)
        t->warm_bytes += len;
    switch (docker_frame_push(&t->frames, chunk, len, &out, &t->why)) {
    case FRAME_MORE:
        return TALK_GOING_ON;
    case FRAME_STOP:
        return t->entry.reported ? TALK_REPORTED : TALK_STOPPED;
    case FRAME_BROKEN:
        break;
    }
    return TALK_GARBLED;
}

/* Receives what is there, at most reads portions. */
static enum talk_end receive_some(struct talk *t, int reads, bool *out_more)
{
    enum talk_end end = TALK_GOING_ON;

    *out_more = true;
    while (end == TALK_GOING_ON && *out_more && reads-- > 0)
        end = talk_receive(t, out_more);
    return end;
}

/* Sends what the connection takes. A program that does not read its input to the end is no error,
 * but one that got nothing of itself is lost. */
void talk_send(struct talk *t)
{
    while (t->sent < t->input.len) {
        size_t left = t->input.len - t->sent;
        ssize_t n = docker_stream_send(t->stream, t->input.data + t->sent,
                                       left < WRITE_BYTES ? left : WRITE_BYTES);

        if (n < 0) {
            t->lost = t->sent <= t->program_at;
            t->sent = t->input.len;
        }
        if (n <= 0)
            break;
        t->sent += (size_t)n;
    }
}

/* The same for a program, with what follows its last byte. */
static void send_program(struct talk *t)
{
    if (t->input_over)
        return;
    talk_send(t);
    if (t->sent < t->input.len)
        return;
    t->input_over = true;
    if (t->protocol == 0)
        docker_stream_finish_input(t->stream);
}

enum talk_end talk_look(struct talk *t)
{
    enum talk_end end;
    bool more;

    /* What a plain image prints before it has its code is output. */
    if (t->protocol == 0)
        return TALK_GOING_ON;
    talk_send(t);
    end = receive_some(t, READS_PER_TICK, &more);
    if (end == TALK_GOING_ON && t->warm_bytes > TALK_WARM_MAX) {
        err_set(&t->why, ERR_PROTOCOL,
                "the runner's entry program sends too much before it has a program");
        return TALK_GARBLED;
    }
    return end;
}

/* Makes room for size more bytes of input, behind the magic that comes first. */
static void input_reserve(struct talk *t, size_t size)
{
    bool first = t->input.len == 0 && t->protocol != 0;

    t->input.max = t->input.len + size + (first ? sizeof ENTRY_MAGIC - 1 : 0);
    buf_reserve(&t->input, t->input.max - t->input.len);
    if (first)
        buf_add_str(&t->input, ENTRY_MAGIC);
}

int talk_preload(struct talk *t, const char *names, struct err *e)
{
    input_reserve(t, ENTRY_RECORD_HEAD + ENTRY_PRELOAD_MAX);
    if (entry_write_preload(names, &t->input, e) < 0)
        return -1;
    talk_send(t);
    return 0;
}

int talk_hand_over(struct talk *t, const struct engine_program *program,
                   const struct engine_sink *sink, struct err *e)
{
    size_t size = program->code_len;

    if (t->protocol != 0 && entry_size(program, &size, e) < 0)
        return -1;
    input_reserve(t, size);
    t->program_at = t->input.len;
    if (t->protocol == 0)
        buf_add(&t->input, program->code, program->code_len);
    else if (entry_write(program, &t->input, e) < 0)
        return -1;
    t->sink = sink;
    t->handed = t->entry.handed = true;
    return 0;
}

/* Time is up, or the caller has cancelled: what has arrived by now still counts, even the report.
 */
static enum talk_end receive_last(struct talk *t, enum talk_end end)
{
    bool more;
    enum talk_end last = receive_some(t, LAST_READS, &more);

    return last == TALK_REPORTED ? last : end;
}

enum talk_end talk_run(struct talk *t, struct docker_attend *attend, struct deadline d)
{
    bool more = true;

    for (;;) {
        struct pollfd p = {.fd = docker_stream_fd(t->stream), .events = POLLIN};
        enum talk_end end;

        send_program(t);
        if (t->lost)
            return TALK_LOST;
        if (!t->input_over)
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
