#include "config.h"

#include "common/engine/docker_talk.h"

#include "common/base/mem.h"

#include <errno.h>
#include <poll.h>

#define READS_PER_TURN                                                                             \
    16                 /* then cancellation and deadline are looked at, however much is waiting */
#define LAST_READS  64 /* of TALK_READ_BYTES, when time is up */
#define WRITE_BYTES 65536

void talk_init(struct talk *t, struct docker_stream *stream, int protocol,
               const struct engine_sink *sink, const char *input, size_t input_len)
{
    *t = (struct talk){.stream = stream,
                       .sink = sink,
                       .protocol = protocol,
                       .input = input,
                       .input_len = input_len,
                       .complaint = BUF_INIT(TALK_COMPLAINT_MAX),
                       .chunk = mem_alloc(TALK_READ_BYTES)};
}

void talk_clear(struct talk *t)
{
    buf_clear(&t->complaint);
    free(t->chunk);
    t->chunk = NULL;
}

/* Keeps the beginning of what the entry program says on stderr, as one line of ASCII. */
static void complain(struct talk *t, const char *data, size_t len)
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
    if (stream == ENGINE_STDOUT)
        return entry_frame_push(&t->entry, data, len, t->sink, e);
    complain(t, data, len);
    return FRAME_MORE;
}

/* Receives one portion and passes it on. *out_more: there may be another at once. */
static enum talk_end receive(struct talk *t, bool *out_more)
{
    const struct docker_frame_out out = {.payload = take_payload, .ctx = t};
    size_t len;
    enum stream_got got = docker_stream_recv(t->stream, t->chunk, TALK_READ_BYTES, &len);

    *out_more = got == STREAM_DATA;
    if (got == STREAM_END)
        return TALK_ENDED;
    if (got == STREAM_NOTHING_NOW)
        return TALK_GOING_ON;
    switch (docker_frame_push(&t->frames, t->chunk, len, &out, &t->why)) {
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
        end = receive(t, out_more);
    return end;
}

/* Sends what the connection takes. A program that does not read its input to the end is no error.
 */
static void send_some(struct talk *t)
{
    while (t->sent < t->input_len) {
        size_t left = t->input_len - t->sent;
        ssize_t n = docker_stream_send(t->stream, t->input + t->sent,
                                       left < WRITE_BYTES ? left : WRITE_BYTES);

        if (n < 0)
            t->sent = t->input_len;
        if (n <= 0)
            break;
        t->sent += (size_t)n;
    }
    if (t->sent == t->input_len && !t->input_over) {
        t->input_over = true;
        if (t->protocol == 0)
            docker_stream_finish_input(t->stream);
    }
}

/* Time is up or nobody wants the answer: what had arrived by now still counts, even the report. */
static enum talk_end last_words(struct talk *t, enum talk_end end)
{
    bool more;
    enum talk_end last = receive_some(t, LAST_READS, &more);

    return last == TALK_REPORTED ? last : end;
}

enum talk_end talk_run(struct talk *t, int cancel_fd, struct deadline d)
{
    bool more = true;

    for (;;) {
        struct pollfd p[2] = {
            {.fd = docker_stream_fd(t->stream), .events = POLLIN},
            {.fd = cancel_fd, .events = POLLIN | POLLRDHUP},
        };
        enum talk_end end;

        if (!t->input_over)
            send_some(t);
        if (!t->input_over)
            p[0].events |= POLLOUT;
        if (poll(p, 2, more ? 0 : deadline_poll_ms(d)) < 0 && errno != EINTR)
            return TALK_ENDED;
        if (p[1].revents)
            return last_words(t, TALK_CANCELLED);
        if (deadline_passed(d))
            return last_words(t, TALK_DEADLINE);
        end = receive_some(t, READS_PER_TURN, &more);
        if (end != TALK_GOING_ON)
            return end;
    }
}
