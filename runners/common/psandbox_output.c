#include "runners/common/psandbox.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char tags[STREAM_N] = {[STREAM_CONTROL] = 'K', [STREAM_OUT] = 'O', [STREAM_ERR] = 'E'};

static size_t waiting_bytes(int fd)
{
    int n = 0;

    return fd >= 0 && ioctl(fd, FIONREAD, &n) == 0 && n > 0 ? (size_t)n : 0;
}

/* A frame of this command whose data is in the room behind the id. */
static void begin(const struct command *c, char tag, size_t len)
{
    unsigned char *id = frame_room();

    id[0] = (unsigned char)(c->id >> 24);
    id[1] = (unsigned char)(c->id >> 16);
    id[2] = (unsigned char)(c->id >> 8);
    id[3] = (unsigned char)c->id;
    frame_begin(tag, ID_LEN + len);
}

short output_events(const struct command *c, enum stream_of of, bool busy)
{
    const struct stream *s = &c->streams[of];
    short events = 0;

    if (s->fd < 0)
        return 0;
    if (!busy && (!c->last || s->due > 0))
        events |= POLLIN;
    if (of == STREAM_CONTROL && c->queue_sent < c->queue_len)
        events |= POLLOUT;
    return events;
}

/* Makes a frame of what the stream holds; false when there is none. Closes it at its end. */
static bool take(struct command *c, enum stream_of of)
{
    struct stream *s = &c->streams[of];
    bool bounded = c->last || (of == STREAM_CONTROL && s->due > 0);
    size_t most = bounded && s->due < DATA_MAX ? s->due : DATA_MAX;
    ssize_t n = read(s->fd, (char *)frame_room() + ID_LEN, most);

    if (n > 0) {
        s->due -= (size_t)n < s->due ? (size_t)n : s->due;
        begin(c, tags[of], (size_t)n);
        return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(s->fd);
        *s = (struct stream){.fd = -1};
    }
    return false;
}

/* What was printed before the program wrote to its control channel goes first, and no more than
 * that: others of its processes may never stop printing. The channel is looked at before the
 * output: what comes there later may speak of output that comes later, and waits for its own turn.
 */
static bool control_first(struct command *c)
{
    if (!c->control_waits && !c->last) {
        c->control_waits = true;
        c->streams[STREAM_CONTROL].due = waiting_bytes(c->streams[STREAM_CONTROL].fd);
        c->streams[STREAM_OUT].due = waiting_bytes(c->streams[STREAM_OUT].fd);
        c->streams[STREAM_ERR].due = waiting_bytes(c->streams[STREAM_ERR].fd);
    }
    return c->streams[STREAM_OUT].due == 0 && c->streams[STREAM_ERR].due == 0;
}

void output_take(struct command *c, const short revents[STREAM_N])
{
    if (revents[STREAM_CONTROL] && c->streams[STREAM_CONTROL].fd >= 0 && control_first(c)) {
        c->control_waits = false;
        if (take(c, STREAM_CONTROL))
            return;
    }
    for (int of = STREAM_OUT; of <= STREAM_ERR; of++) {
        /* When control waits, only what it waits for. */
        if (c->control_waits && c->streams[of].due == 0)
            continue;
        if (revents[of] && c->streams[of].fd >= 0 && take(c, (enum stream_of)of))
            return;
    }
}

void output_last(struct command *c)
{
    c->last = true;
    for (int of = 0; of < STREAM_N; of++)
        c->streams[of].due = waiting_bytes(c->streams[of].fd);
}

void output_end(struct command *c)
{
    char *text = (char *)frame_room() + ID_LEN;

    if (c->state == COMMAND_FAILED) {
        size_t len = strlen(c->why);

        memcpy(text, c->why, len);
        begin(c, 'F', len);
    } else {
        c->report.oom_kills = report_oom_kills() - c->ooms;
        begin(c, 'R', report_write(text, &c->report));
    }
    for (int of = 0; of < STREAM_N; of++) {
        if (c->streams[of].fd >= 0 && of != STREAM_CONTROL)
            left_add(c->streams[of].fd);
        else if (c->streams[of].fd >= 0)
            close(c->streams[of].fd);
    }
    free(c->queue);
    *c = (struct command){.state = COMMAND_NONE};
}
