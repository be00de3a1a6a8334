#include "config.h"

#include "fcgi/stdio/stdio_inbox.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "fcgi/hub/events.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_CHUNK 65536
#define LINES_MAX                                                                                  \
    16 /* queue size, in lines of the greatest length; what they take as trees counts */
#define REFUSED_MAX 1   /* likewise, on top of it: of requests that are refused for lack of room */
#define MAIL_SIZE   256 /* what a line takes beside its text, */
#define VALUE_SIZE  112 /* and each value in it as a tree: more than its text */

/* ---- the reader: everything up to start_thread() runs in the thread ---- */

/* With the lock held. Hangs up the descriptor of the request under way. */
static void cancel_current(struct stdio_inbox *b)
{
    b->cancelled = true;
    auto_close_fd(&b->cancel_end);
    pthread_cond_broadcast(&b->changed);
}

const json_t *stdio_cancelled_id(const json_t *message)
{
    const char *method = json_get_string(message, "method");

    if (!method || strcmp(method, "notifications/cancelled") != 0)
        return NULL;
    return json_object_get(json_object_get(message, "params"), "requestId");
}

static bool is_response(const json_t *message)
{
    return json_is_object(message) && !json_object_get(message, "method");
}

static void mail_unlink(struct stdio_inbox *b, struct stdio_mail **at)
{
    struct stdio_mail *m = *at;

    *at = m->next;
    if (!*at)
        b->end = at;
    b->size -= m->size;
}

/* Cancels the request under way, or a queued one. False: it is neither; it may be an open
 * subscription. */
static bool cancel_request(struct stdio_inbox *b, const json_t *id)
{
    if (b->current && json_equal(b->current, id)) {
        cancel_current(b);
        return true;
    }
    for (struct stdio_mail **at = &b->first; *at; at = &(*at)->next) {
        struct stdio_mail *m = *at;
        if (!json_object_get(m->message, "method") ||
            !json_equal(json_object_get(m->message, "id"), id))
            continue;
        mail_unlink(b, at);
        stdio_mail_free(m);
        return true;
    }
    return false;
}

/*
 * Makes room where there is none: a request is refused, of which only its id is queued; a response
 * is kept, since a call waits for it; notifications and events are dropped. False: dropped. The
 * reader never waits for room: it would not see a cancellation that follows.
 */
static bool mail_fit(struct stdio_inbox *b, struct stdio_mail *m)
{
    const size_t max = LINES_MAX * b->line_max, refused_max = max + REFUSED_MAX * b->line_max;

    if (!b->first || b->size + m->size <= max)
        return true;
    m->id = json_incref(json_object_get(m->message, "id"));
    if (!m->id || b->size + MAIL_SIZE > refused_max)
        return false;
    if (is_response(m->message))
        return b->size + m->size <= refused_max;
    json_decref(TAKE_PTR(m->message));
    m->size = MAIL_SIZE;
    return true;
}

static void mail_deliver(struct stdio_inbox *b, struct stdio_mail *m)
{
    const json_t *id = m->message ? stdio_cancelled_id(m->message) : NULL;

    m->size += MAIL_SIZE;
    pthread_mutex_lock(&b->lock);
    if ((id && cancel_request(b, id)) || !mail_fit(b, m)) {
        stdio_mail_free(m);
    } else {
        *b->end = m;
        b->end = &m->next;
        b->size += m->size;
        pthread_cond_broadcast(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
}

/* Of the line as it will lie in memory. Marks in strings count, too: it is at most that much. */
static size_t mail_size(const char *line, size_t len)
{
    size_t size = len;

    for (const char *c = line; c < line + len; c++)
        if (*c == '[' || *c == '{' || *c == ',' || *c == ':')
            size += VALUE_SIZE;
    return size;
}

static void deliver_line(struct stdio_inbox *b, const char *line, size_t len)
{
    if (len > 0 && line[len - 1] == '\r')
        len--;
    if (len == 0)
        return;
    struct stdio_mail *m = mem_alloc(sizeof *m);
    m->size = mail_size(line, len);
    m->message = json_parse(line, len, JSON_MAX_DEPTH, &m->problem);
    mail_deliver(b, m);
}

/* Refuses a line that is too long, once, and skips it to its end. */
static void drop_long_line(struct stdio_inbox *b)
{
    buf_reset(&b->in);
    if (b->skipping)
        return;
    b->skipping = true;
    struct stdio_mail *m = mem_alloc(sizeof *m);
    err_set(&m->problem, ERR_LIMIT, "the message is over SANDCGI_MAX_BODY");
    mail_deliver(b, m);
}

static void deliver_lines(struct stdio_inbox *b)
{
    char *end;

    while (b->in.len > 0 && (end = memchr(b->in.data, '\n', b->in.len))) {
        size_t len = (size_t)(end - b->in.data);
        if (!b->skipping)
            deliver_line(b, b->in.data, len);
        b->skipping = false;
        buf_drop_front(&b->in, len + 1);
    }
    if (b->in.len > b->line_max)
        drop_long_line(b);
}

static void deliver_events(struct stdio_inbox *b)
{
    struct mcp_event event;
    json_t *source;

    while ((source = events_receive(b->events_fd, &event))) {
        struct stdio_mail *m = mem_alloc(sizeof *m);
        m->source = source;
        m->event = event;
        mail_deliver(b, m);
    }
}

/* Delivers events until there is input. */
static void wait_for_input(struct stdio_inbox *b)
{
    struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                         {.fd = b->events_fd, .events = POLLIN}};

    while (poll(p, ARRAY_LEN(p), -1) < 0 || !p[0].revents)
        if (p[1].revents)
            deliver_events(b);
}

/* Reads to the end of input; 0, or -1 with errno. */
static int read_input(struct stdio_inbox *b)
{
    for (;;) {
        wait_for_input(b);
        char *room = buf_reserve(&b->in, READ_CHUNK);
        ssize_t n = read(STDIN_FILENO, room, READ_CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return (int)n;
        buf_grew(&b->in, (size_t)n);
        deliver_lines(b);
    }
}

static void *reader(void *arg)
{
    struct pollfd output = {.fd = STDOUT_FILENO};
    struct stdio_inbox *b = arg;
    int rc = read_input(b);

    pthread_mutex_lock(&b->lock);
    if (rc < 0)
        err_errno(&b->error, "reading standard input");
    b->ended = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    /* Input may end long before the answers are out ("echo … | sandcgi stdio"): a request is
     * cancelled only when standard output is closed as well. */
    while (poll(&output, 1, -1) < 0 && errno == EINTR)
        continue;
    pthread_mutex_lock(&b->lock);
    cancel_current(b);
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* ---- the main thread ---- */

/* Signals are delivered to the main thread only. */
static int start_thread(struct stdio_inbox *b, struct err *e)
{
    sigset_t all, before;
    pthread_t thread;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, NULL, reader, b);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0)
        return err_set(e, ERR_IO, "cannot start a thread: %s", strerror(rc));
    pthread_detach(thread);
    return 0;
}

int stdio_inbox_start(struct stdio_inbox *b, size_t line_max, int events_fd, struct err *e)
{
    pthread_condattr_t monotonic;

    *b = (struct stdio_inbox){.line_max = line_max,
                              .events_fd = events_fd,
                              .cancel_end = -1,
                              .in = BUF_INIT(line_max + 2 * READ_CHUNK)};
    b->end = &b->first;
    json_object_seed(0); /* two threads make objects */
    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&b->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return start_thread(b, e);
}

void stdio_mail_free(struct stdio_mail *m)
{
    json_decref(m->message);
    json_decref(m->source);
    json_decref(m->id);
    free(m);
}

struct stdio_mail *stdio_inbox_next(struct stdio_inbox *b, struct err *e)
{
    pthread_mutex_lock(&b->lock);
    while (!b->first && !b->ended)
        pthread_cond_wait(&b->changed, &b->lock);
    struct stdio_mail *m = b->first;
    if (m)
        mail_unlink(b, &b->first);
    else
        *e = b->error;
    pthread_mutex_unlock(&b->lock);
    return m;
}

static json_t *take_response(struct stdio_inbox *b)
{
    for (struct stdio_mail **at = &b->first; *at; at = &(*at)->next) {
        struct stdio_mail *m = *at;
        if (!m->message || !is_response(m->message))
            continue;
        mail_unlink(b, at);
        json_t *message = TAKE_PTR(m->message);
        stdio_mail_free(m);
        return message;
    }
    return NULL;
}

json_t *stdio_inbox_next_response(struct stdio_inbox *b, int timeout_ms)
{
    int64_t until = clock_mono_ms() + timeout_ms;
    const struct timespec at = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};
    json_t *message;
    int rc = 0;

    pthread_mutex_lock(&b->lock);
    while (!(message = take_response(b)) && !b->ended && !b->cancelled && rc == 0)
        rc = pthread_cond_timedwait(&b->changed, &b->lock, &at);
    pthread_mutex_unlock(&b->lock);
    return message;
}

int stdio_inbox_begin(struct stdio_inbox *b, json_t *id)
{
    int ends[2] = {-1, -1};

    if (!id || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -1;
    pthread_mutex_lock(&b->lock);
    b->current = json_incref(id);
    b->cancel_end = ends[1];
    b->cancelled = false;
    pthread_mutex_unlock(&b->lock);
    return ends[0];
}

bool stdio_inbox_finish(struct stdio_inbox *b, int cancel_fd)
{
    pthread_mutex_lock(&b->lock);
    bool cancelled = b->cancelled;
    b->cancelled = false;
    json_decref(TAKE_PTR(b->current));
    auto_close_fd(&b->cancel_end);
    pthread_mutex_unlock(&b->lock);
    auto_close_fd(&cancel_fd);
    return cancelled;
}
