#include "config.h"

#include "fcgi/oauth/judge_serve.h"

#include "common/base/acceptor.h"
#include "common/base/auto.h"
#include "common/base/b64.h"
#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/loop.h"
#include "common/base/mem.h"
#include "common/base/privsep.h"
#include "fcgi/hub/fcgi_record.h"
#include "fcgi/oauth/judge.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNS_MAX    2048
#define WAITING_MAX  256   /* calls that wait for the issuer */
#define WAIT_MS      12000 /* one of them, at most */
#define REQUEST_MS   5000  /* for a question that has begun, or a new connection's first */
#define TICK_MS      1000
#define SPARE_FDS    64 /* besides those of connections */
#define CLIENT_MAX   1024
#define KEEP_CONN    1
#define ANSWER_BYTES 1024
#define KEPT_S       5 /* nginx keeps an answer so long: a revoked token is seen then */
/* Of our own authorization server, below SANDBOX_ROOT; what is public of it. */
#define FOLDER_NAME   ".oauth"
#define PUBLIC_FOLDER FOLDER_NAME "/public"

struct conn {
    struct conn *next, **at;
    int fd; /* -1: closed, to be freed */
    struct loop_watch watch;
    struct fcgi_reader reader;
    /* the question, while it waits for the issuer */
    bool waits;
    char *token; /* owned */
    uint8_t digest[CRYPTO_SHA256_LEN];
    struct deadline give_up; /* for the question, or its answer; never: the peer keeps it idle */
};

struct oauth {
    struct judge *judge;
    struct loop loop;
    struct acceptor listen, asks;
    struct conn *conns, *closed;
    size_t n_conns, n_waiting;
    size_t n_timed;   /* connections with a time to give up */
    size_t n_refused; /* in a row, for want of room */
    bool changed;     /* those that wait are to be looked at */
};

/* ---- connections ---- */

static void give_up_at(struct oauth *o, struct conn *c, struct deadline d)
{
    o->n_timed -= c->give_up.at_ms >= 0;
    o->n_timed += d.at_ms >= 0;
    c->give_up = d;
}

static void forget_question(struct oauth *o, struct conn *c)
{
    o->n_waiting -= c->waits;
    c->waits = false;
    if (c->token)
        explicit_bzero(c->token, strlen(c->token));
    free(TAKE_PTR(c->token));
}

static void conn_close(struct oauth *o, struct conn *c)
{
    if (c->fd < 0)
        return;
    forget_question(o, c);
    give_up_at(o, c, DEADLINE_NEVER);
    loop_remove(&o->loop, &c->watch);
    auto_close_fd(&c->fd);
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    c->next = o->closed;
    o->closed = c;
    o->n_conns--;
}

static void free_closed(struct oauth *o)
{
    while (o->closed) {
        struct conn *c = o->closed;
        o->closed = c->next;
        fcgi_reader_clear(&c->reader);
        free(c);
    }
}

/* ---- answers ---- */

/* An answer is small: there is room for it, or the peer does not read. */
static void send_answer(struct oauth *o, struct conn *c, const struct buf *head)
{
    AUTO_BUF struct buf out = BUF_INIT(ANSWER_BYTES + 64);
    const bool keep = c->reader.begin[2] & KEEP_CONN;

    forget_question(o, c);
    fcgi_record_add(&out, FCGI_STDOUT, c->reader.request_id, head->data, head->len);
    fcgi_record_add_end(&out, c->reader.request_id);
    ssize_t n = send(c->fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (!keep || n != (ssize_t)out.len) {
        conn_close(o, c);
        return;
    }
    fcgi_reader_clear(&c->reader);
    fcgi_reader_init(&c->reader, 0);
    give_up_at(o, c, DEADLINE_NEVER);
}

static void refuse(struct oauth *o, struct conn *c, const char *text)
{
    AUTO_BUF struct buf head = BUF_INIT(ANSWER_BYTES);

    buf_add_str(&head, "Status: 401 Unauthorized\r\nX-Accel-Expires: 0\r\n" JUDGE_FAULT);
    for (; *text; text++) /* it comes into a quoted string of a header, and of JSON */
        buf_add_char(&head, *text >= ' ' && *text <= '~' && !strchr("\"\\", *text) ? *text : '?');
    buf_add_str(&head, "\r\n\r\n");
    send_answer(o, c, &head);
}

static void accept_token(struct oauth *o, struct conn *c, const char *token, const char *row,
                         int64_t until_s)
{
    AUTO_BUF struct buf head = BUF_INIT(ANSWER_BYTES);
    uint8_t digest[CRYPTO_MD5_LEN];
    struct err e = ERR_INIT;
    const int64_t left_s = until_s - clock_unix_s();

    if (crypto_md5(token, strlen(token), digest, &e) < 0) {
        refuse(o, c, "the token cannot be checked");
        return;
    }
    buf_addf(&head, "Status: 204 No Content\r\nX-Accel-Expires: %d\r\n" JUDGE_MARK,
             left_s < 0        ? 0
             : left_s < KEPT_S ? (int)left_s
                               : KEPT_S);
    b64url_encode(digest, sizeof digest, &head);
    buf_addf(&head, "\r\n" JUDGE_ROW "%s\r\n\r\n", row);
    send_answer(o, c, &head);
}

static void judge_conn(struct oauth *o, struct conn *c, const char *token, bool first)
{
    char text[VERDICT_TEXT_MAX];
    int64_t until_s = 0;
    enum judged judged = judge_token(o->judge, token, c->digest, first, text, &until_s);

    if (judged == JUDGED_GOOD) {
        accept_token(o, c, token, text, until_s);
    } else if (judged == JUDGED_BAD) {
        refuse(o, c, text);
    } else if (first && o->n_waiting == WAITING_MAX) {
        refuse(o, c, "too many calls wait for the issuer; try again");
    } else if (first) {
        c->token = mem_strdup(token);
        c->waits = true;
        give_up_at(o, c, deadline_in_ms(WAIT_MS));
        o->n_waiting++;
    }
}

static void on_question(struct oauth *o, struct conn *c)
{
    static const char scheme[] = "Bearer ";
    const char *header = fcgi_reader_param(&c->reader, "HTTP_AUTHORIZATION");
    struct err e = ERR_INIT;

    if (!header || strncasecmp(header, scheme, strlen(scheme)) != 0) {
        refuse(o, c, "there is no bearer token");
        return;
    }
    const char *token = header + strlen(scheme) + strspn(header + strlen(scheme), " ");
    if (crypto_sha256(token, strlen(token), c->digest, &e) < 0)
        refuse(o, c, "the token cannot be checked");
    else
        judge_conn(o, c, token, true);
}

static void on_conn(void *owner, void *item, uint32_t events)
{
    struct oauth *o = owner;
    struct conn *c = item;
    char data[16384];
    struct err e = ERR_INIT;

    (void)events;
    ssize_t n = recv(c->fd, data, sizeof data, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || c->waits) { /* it has left, or speaks before the answer */
        conn_close(o, c);
        return;
    }
    if (c->give_up.at_ms < 0)
        give_up_at(o, c, deadline_in_ms(REQUEST_MS));
    int rc = fcgi_reader_feed(&c->reader, data, (size_t)n, &e);
    explicit_bzero(data, (size_t)n);
    if (rc < 0)
        conn_close(o, c);
    else if (rc > 0)
        on_question(o, c);
}

static void conn_add(void *owner, int take_fd)
{
    struct oauth *o = owner;
    struct err e = ERR_INIT;

    if (o->n_conns == CONNS_MAX) {
        if (o->n_refused++ == 0) /* told once until there is room again */
            log_warn("%d connections ask about access tokens; further ones are closed", CONNS_MAX);
        close(take_fd);
        return;
    }
    o->n_refused = 0;
    struct conn *c = mem_alloc(sizeof *c);
    *c = (struct conn){.next = o->conns, .at = &o->conns, .fd = take_fd, .give_up = DEADLINE_NEVER};
    c->watch = LOOP_WATCH_INIT;
    fcgi_reader_init(&c->reader, 0);
    if (c->next)
        c->next->at = &c->next;
    o->conns = c;
    o->n_conns++;
    give_up_at(o, c, deadline_in_ms(REQUEST_MS));
    if (loop_add(&o->loop, &c->watch, c->fd, EPOLLIN | EPOLLRDHUP, on_conn, c, &e) < 0)
        conn_close(o, c);
}

/* ---- the loop ---- */

static void on_changed(void *ctx)
{
    ((struct oauth *)ctx)->changed = true;
}

static void look_at_conns(struct oauth *o)
{
    o->changed = false;
    for (struct conn *c = o->conns, *next; c; c = next) {
        next = c->next;
        if (deadline_passed(c->give_up)) {
            if (c->waits)
                refuse(o, c, "the issuer does not answer in time");
            else
                conn_close(o, c); /* half a question */
            continue;
        }
        if (!c->waits)
            continue;
        AUTO_FREE char *token = mem_strdup(c->token); /* judge_conn may forget it */
        judge_conn(o, c, token, false);
        explicit_bzero(token, strlen(token));
    }
}

static int turn(struct oauth *o, const sigset_t *while_waiting, struct err *e)
{
    struct deadline d = o->n_timed > 0 ? deadline_in_ms(TICK_MS) : DEADLINE_NEVER;

    d = deadline_min(d, deadline_min(o->listen.again, o->asks.again));
    if (judge_wait(o->judge, &o->loop, d, while_waiting, e) < 0)
        return -1;
    if (o->changed || o->n_timed > 0)
        look_at_conns(o);
    free_closed(o);
    acceptor_tick(&o->listen);
    acceptor_tick(&o->asks);
    if (o->listen.failure.kind != ERR_NONE)
        *e = o->listen.failure;
    return o->listen.failure.kind == ERR_NONE ? 0 : -1;
}

int judge_serve(const struct settings *s, const struct judge_secrets *secrets, int listen_fd,
                int asks_fd, struct err *e)
{
    struct oauth o = {.loop = LOOP_INIT,
                      .listen = ACCEPTOR_INIT(listen_fd, false, conn_add),
                      .asks = ACCEPTOR_INIT(asks_fd, true, conn_add)};
    sigset_t while_waiting;

    o.judge = judge_new(s, secrets->state_fd, secrets->client, on_changed, &o, e);
    int rc = o.judge ? stop_prepare(&while_waiting, e) : -1;
    if (rc == 0)
        rc = loop_init(&o.loop, &o, e);
    if (rc == 0)
        rc = acceptor_open(&o.listen, &o.loop, e);
    if (rc == 0 && asks_fd >= 0)
        rc = acceptor_open(&o.asks, &o.loop, e);
    while (rc == 0 && !stop_requested())
        rc = turn(&o, &while_waiting, e);
    while (o.conns)
        conn_close(&o, o.conns);
    free_closed(&o);
    loop_clear(&o.loop);
    judge_free(o.judge);
    return rc;
}

/* ---- the process ---- */

static int read_client(const char *path, char **out, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(CLIENT_MAX);

    if (fdio_read_file(path, &text, e) < 0)
        return err_wrap(e, "SANDCGI_OAUTH_CLIENT_FILE");
    size_t len = strcspn(buf_str(&text), "\r\n");
    const char *rest = buf_str(&text) + len;
    bool good = memchr(buf_str(&text), ':', len) && !rest[strspn(rest, "\r\n")];
    if (good)
        *out = mem_strndup(buf_str(&text), len);
    explicit_bzero(text.data, text.len);
    return good ? 0
                : err_set(e, ERR_INVALID,
                          "SANDCGI_OAUTH_CLIENT_FILE: %s must have one line, CLIENT_ID:SECRET",
                          path);
}

int judge_secrets_open(const struct settings *s, const struct account *workers,
                       struct judge_secrets *out, struct err *e)
{
    *out = (struct judge_secrets){.state_fd = -1};
    if (s->access.builtin) {
        AUTO_FD int folder = root_folder_open(s, FOLDER_NAME, workers, e);
        out->state_fd = folder < 0 ? -1 : root_folder_open(s, PUBLIC_FOLDER, workers, e);
        return out->state_fd < 0 ? -1 : 0;
    }
    return *s->access.introspect ? read_client(s->access.client_file, &out->client, e) : 0;
}

void judge_secrets_clear(struct judge_secrets *secrets)
{
    auto_close_fd(&secrets->state_fd);
    if (secrets->client)
        explicit_bzero(secrets->client, strlen(secrets->client));
    free(TAKE_PTR(secrets->client));
}

int judge_main(const struct settings *s, const struct account *workers, int listen_fd, int asks_fd,
               struct err *e)
{
    struct judge_secrets secrets;
    const bool talks = !s->access.builtin;
    int rc = judge_secrets_open(s, workers, &secrets, e);

    explicit_bzero(s->file_secret, strlen(s->file_secret));
    explicit_bzero(s->old_secret, strlen(s->old_secret));
    explicit_bzero(s->api_token, strlen(s->api_token));
    fdio_allow(CONNS_MAX + SPARE_FDS);
    json_object_seed(0); /* from a file, which cannot be opened later */
    const struct privsep_needs needs = {.files = talks ? privsep_network_files : NULL,
                                        .folder_fd = secrets.state_fd,
                                        .families = talks ? privsep_network_families : NULL};
    if (rc == 0)
        rc = account_become(workers, e);
    if (rc == 0)
        rc = front_memory_bound(s, false, e);
    if (rc == 0 && privsep_confine(&needs, e) < 0)
        rc = err_wrap(e, "giving up files and sockets");
    if (rc == 0)
        rc = judge_serve(s, &secrets, listen_fd, asks_fd, e);
    judge_secrets_clear(&secrets);
    return rc;
}
