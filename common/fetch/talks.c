#include "config.h"

#include "common/fetch/talks.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/fetch/easy.h"
#include "common/fetch/guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define CONNECT_MS 5000

struct talk {
    CURL *curl; /* NULL: free */
    struct talks *talks;
    struct buf answer;
    char *form;
    bool plain, may_be_private;
    struct err why; /* set by a callback that stopped it */
    talk_done *done;
    void *ctx;
};

struct talks {
    CURLM *multi;
    size_t n;
    struct talk items[TALKS_MAX];
};

struct talks *talks_new(struct err *e)
{
    struct talks *t = mem_alloc(sizeof *t);

    t->multi = curl_multi_init();
    if (t->multi)
        return t;
    free(t);
    err_set(e, ERR_INTERNAL, "libcurl does not start");
    return NULL;
}

static void talk_clear(struct talk *talk)
{
    if (!talk->curl)
        return;
    curl_multi_remove_handle(talk->talks->multi, talk->curl);
    curl_easy_cleanup(talk->curl);
    talk->talks->n--;
    if (talk->form)
        explicit_bzero(talk->form, strlen(talk->form));
    free(talk->form);
    buf_clear(&talk->answer);
    *talk = (struct talk){0};
}

void talks_free(struct talks *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < TALKS_MAX; i++)
        talk_clear(&t->items[i]);
    curl_multi_cleanup(t->multi);
    free(t);
}

size_t talks_count(const struct talks *t)
{
    return t->n;
}

/* ---- one request ---- */

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 ==
               127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* The address that will be connected to. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct talk *talk = ctx;

    if (talk->plain && !is_loopback(&to->addr))
        err_set(&talk->why, ERR_DENIED, "http leads to this machine only");
    else if (purpose == CURLSOCKTYPE_IPCXN &&
             (talk->plain || talk->may_be_private ||
              guard_check(&to->addr, (socklen_t)to->addrlen, &talk->why) == 0)) {
        talk->why = ERR_INIT; /* another address of the host may have been denied */
        return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    }
    return CURL_SOCKET_BAD;
}

static size_t take_data(char *data, size_t size, size_t n, void *ctx)
{
    struct talk *talk = ctx;

    buf_add(&talk->answer, data, size * n);
    if (buf_ok(&talk->answer))
        return size * n;
    err_set(&talk->why, ERR_LIMIT, "the answer is over %zu bytes", talk->answer.max);
    return 0;
}

static bool set_options(struct talk *talk, const struct talk_request *r)
{
    const struct easy_request request = {.url = r->url,
                                         .plain = talk->plain,
                                         .connect_ms = CONNECT_MS,
                                         .timeout_ms = (long)r->timeout_ms,
                                         .max_bytes = r->max_bytes,
                                         .open_socket = open_socket,
                                         .take_data = take_data,
                                         .ctx = talk};
    CURLcode rc = easy_set_options(talk->curl, &request);

    if (!rc)
        rc = curl_easy_setopt(talk->curl, CURLOPT_PRIVATE, talk);
    if (!rc && r->user_password)
        rc = curl_easy_setopt(talk->curl, CURLOPT_USERPWD, r->user_password);
    if (!rc && talk->form)
        rc = curl_easy_setopt(talk->curl, CURLOPT_POSTFIELDS, talk->form);
    return !rc;
}

int talks_begin(struct talks *t, const struct talk_request *r, struct err *e)
{
    struct talk *talk = t->items;

    while (talk < t->items + TALKS_MAX && talk->curl)
        talk++;
    if (talk == t->items + TALKS_MAX)
        return err_set(e, ERR_BUSY, "%d requests are under way", TALKS_MAX);
    *talk = (struct talk){.curl = curl_easy_init(),
                          .talks = t,
                          .answer = BUF_INIT(r->max_bytes),
                          .form = r->form ? mem_strdup(r->form) : NULL,
                          .plain = strncmp(r->url, "http://", 7) == 0,
                          .may_be_private = r->may_be_private,
                          .done = r->done,
                          .ctx = r->ctx};
    if (!talk->curl) {
        free(talk->form);
        *talk = (struct talk){0};
        return err_set(e, ERR_INTERNAL, "libcurl does not start");
    }
    t->n++;
    if (set_options(talk, r) && curl_multi_add_handle(t->multi, talk->curl) == CURLM_OK)
        return 0;
    talk_clear(talk);
    return err_set(e, ERR_INVALID, "libcurl does not take the URL");
}

/* ---- waiting ---- */

/* Texts of our own where libcurl's may repeat the URL. */
static void say_why(const struct talk *talk, CURLcode rc, long status, char *out, size_t size)
{
    if (talk->why.kind != ERR_NONE)
        snprintf(out, size, "%s", talk->why.text);
    else if (rc == CURLE_OPERATION_TIMEDOUT)
        snprintf(out, size, "it does not answer in time");
    else if (rc == CURLE_FILESIZE_EXCEEDED)
        snprintf(out, size, "the answer is over %zu bytes", talk->answer.max);
    else if (rc)
        snprintf(out, size, "%s", curl_easy_strerror(rc));
    else
        snprintf(out, size, "it answers with status %ld", status);
}

static void talk_end(struct talk *talk, CURLcode rc)
{
    struct buf answer = talk->answer;
    talk_done *done = talk->done;
    void *ctx = talk->ctx;
    char why[sizeof talk->why.text];
    long status = 0;

    curl_easy_getinfo(talk->curl, CURLINFO_RESPONSE_CODE, &status);
    say_why(talk, rc, status, why, sizeof why);
    talk->answer = BUF_INIT(0);
    talk_clear(talk);
    if (!rc && status == 200)
        done(ctx, buf_str(&answer), answer.len, NULL);
    else
        done(ctx, NULL, 0, why);
    buf_clear(&answer);
}

static void end_all(struct talks *t)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(t->multi, &left))) {
        struct talk *talk = NULL;
        CURLcode rc = message->data.result; /* the message ends with its handle */
        if (message->msg == CURLMSG_DONE &&
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &talk) == CURLE_OK && talk)
            talk_end(talk, rc);
    }
}

int talks_wait(struct talks *t, int fd, struct deadline d, struct err *e)
{
    struct curl_waitfd own = {.fd = fd, .events = CURL_WAIT_POLLIN};
    int ms = deadline_poll_ms(d), running;

    if (curl_multi_perform(t->multi, &running) != CURLM_OK ||
        curl_multi_poll(t->multi, &own, 1, ms < 0 ? INT32_MAX : ms, NULL) != CURLM_OK ||
        curl_multi_perform(t->multi, &running) != CURLM_OK)
        return err_set(e, ERR_INTERNAL, "libcurl cannot wait");
    end_all(t);
    return 0;
}
