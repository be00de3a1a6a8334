#include "config.h"

#include "common/index/proxy.h"

#include "common/base/address.h"
#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/privsep.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAD_MS    10000
#define CONNECT_MS 15000
#define IDLE_MS    60000
#define CHUNK      16384
#define DNS_PORT   53

#define METHOD   "CONNECT "
#define CLOSE    "DELETE / "
#define END      "\r\n\r\n"
#define LENGTH   (sizeof METHOD - 1)
#define PROTOCOL " HTTP/1."

/* ---- the request ---- */

/* Lines end in CR LF, and nowhere else is one of the two, nor a NUL. */
static bool lines_are_clean(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] == '\r' && (i + 1 == len || data[i + 1] != '\n'))
            return false;
        if (data[i] == '\n' && (i == 0 || data[i - 1] != '\r'))
            return false;
        if (data[i] == '\0')
            return false;
    }
    return true;
}

/* "host:port HTTP/1.1" */
static bool parse_target(const char *at, const char *end, struct index_host *host)
{
    size_t tail = sizeof PROTOCOL; /* and one digit */

    if ((size_t)(end - at) <= tail || memcmp(end - tail, PROTOCOL, tail - 1) != 0 ||
        (end[-1] != '0' && end[-1] != '1'))
        return false;
    return index_host_parse(at, (size_t)(end - at) - tail, 0, host);
}

enum index_request_state index_request_parse(const char *data, size_t len, struct index_host *host,
                                             size_t *head_len)
{
    const char *end = memmem(data, len, END, sizeof END - 1);
    const char *line;

    if (!end)
        return len < INDEX_HEAD_MAX ? INDEX_REQUEST_MORE : INDEX_REQUEST_BAD;
    *head_len = (size_t)(end - data) + sizeof END - 1;
    if (*head_len > INDEX_HEAD_MAX || !lines_are_clean(data, *head_len))
        return INDEX_REQUEST_BAD;
    if (*head_len > sizeof CLOSE && memcmp(data, CLOSE, sizeof CLOSE - 1) == 0)
        return INDEX_REQUEST_CLOSE;
    if (*head_len < LENGTH || memcmp(data, METHOD, LENGTH) != 0)
        return INDEX_REQUEST_METHOD;
    line = memchr(data, '\r', *head_len);
    return parse_target(data + LENGTH, line, host) ? INDEX_REQUEST_CONNECT : INDEX_REQUEST_BAD;
}

struct head {
    char data[INDEX_HEAD_MAX];
    size_t len;      /* bytes received */
    size_t head_len; /* of them; the rest is for the index */
    struct index_host host;
    bool closes; /* it asks for the end instead */
};

static void request_refuse(int fd, const char *status, const char *sentence)
{
    char text[512];
    struct err e = ERR_INIT;
    int len = snprintf(text, sizeof text,
                       "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                       "Connection: close\r\n\r\n%s\n",
                       status, strlen(sentence) + 1, sentence);

    if (len > 0 && (size_t)len < sizeof text)
        fdio_write_all(fd, text, (size_t)len, &e); /* it fails when the client has left */
}

/* False: too little, too slow, or no valid request; it has been refused. */
static bool read_head(int fd, struct head *h)
{
    struct deadline end = deadline_in_ms(HEAD_MS);

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        enum index_request_state state = index_request_parse(h->data, h->len, &h->host,
                                                             &h->head_len);
        ssize_t n;

        h->closes = state == INDEX_REQUEST_CLOSE;
        if (state == INDEX_REQUEST_CONNECT || h->closes)
            return true;
        if (state == INDEX_REQUEST_METHOD)
            request_refuse(fd, "405 Method Not Allowed", "Only CONNECT is served here.");
        else if (state == INDEX_REQUEST_BAD)
            request_refuse(fd, "400 Bad Request", "This is not a valid request.");
        if (state != INDEX_REQUEST_MORE || poll(&p, 1, deadline_poll_ms(end)) <= 0)
            return false;
        n = read(fd, h->data + h->len, sizeof h->data - h->len);
        if (n <= 0)
            return false;
        h->len += (size_t)n;
    }
}

/* ---- the index ---- */

static bool may_connect(const struct index_rules *rules, const char *host, const struct addrinfo *a)
{
    uint8_t literal[16];

    switch (address_kind_of(a->ai_addr, a->ai_addrlen)) {
    case ADDRESS_PUBLIC:
    case ADDRESS_SPECIAL:
        return true;
    case ADDRESS_PRIVATE:
        return rules->private_ok || inet_pton(AF_INET, host, literal) == 1 ||
               inet_pton(AF_INET6, host, literal) == 1;
    case ADDRESS_NEVER:
        break;
    }
    return false;
}

/* -1: no connection in time. */
static int connect_to(const struct addrinfo *a, struct deadline end)
{
    AUTO_FD int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t len = sizeof error;

    if (fd < 0)
        return -1;
    if (connect(fd, a->ai_addr, a->ai_addrlen) < 0 &&
        (errno != EINPROGRESS || poll(&p, 1, deadline_poll_ms(end)) <= 0 ||
         getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error != 0))
        return -1;
    return TAKE_FD(fd);
}

/* The descriptor, or -1: the request has been refused. */
static int index_connect(int fd, const struct index_rules *rules, const struct index_host *host)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct deadline end = deadline_in_ms(CONNECT_MS);
    struct addrinfo *list = NULL;
    bool forbidden = false;
    char port[8];
    int there = -1;

    snprintf(port, sizeof port, "%u", host->port);
    if (getaddrinfo(host->name, port, &hints, &list) != 0) {
        request_refuse(fd, "502 Bad Gateway", "The index's name cannot be resolved.");
        return -1;
    }
    for (const struct addrinfo *a = list; a && there < 0 && !deadline_passed(end); a = a->ai_next) {
        if (may_connect(rules, host->name, a))
            there = connect_to(a, end);
        else
            forbidden = true;
    }
    freeaddrinfo(list);
    if (there < 0 && forbidden)
        request_refuse(fd, "403 Forbidden",
                       "The index's name leads to a private address (SANDBOX_INDEX_PRIVATE).");
    else if (there < 0)
        request_refuse(fd, "502 Bad Gateway", "The index does not answer.");
    return there;
}

/* ---- relaying ---- */

struct lane {
    int from, to;
    _Atomic int64_t *left; /* bytes that all lanes of this direction may still carry */
    char data[CHUNK];
    size_t at, len; /* of data: not yet sent */
    bool ended;     /* from has shut its side */
};

static bool lane_is_done(const struct lane *l)
{
    return l->ended && l->at == l->len;
}

/* False when the connection is broken or over its budget. */
static bool lane_fill(struct lane *l)
{
    ssize_t n = recv(l->from, l->data, sizeof l->data, MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0) {
        l->ended = true;
        return shutdown(l->to, SHUT_WR) == 0;
    }
    l->at = 0;
    l->len = (size_t)n;
    return atomic_fetch_sub(l->left, n) >= n;
}

static bool lane_drain(struct lane *l)
{
    ssize_t n = send(l->to, l->data + l->at, l->len - l->at, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    l->at += (size_t)n;
    return true;
}

/* A lane waits for its own reader while it holds bytes, else for its writer. */
static bool lane_move(struct lane *l, short from_events, short to_events)
{
    if (l->at < l->len)
        return !(to_events & (POLLOUT | POLLERR)) || lane_drain(l);
    return l->ended || !(from_events & (POLLIN | POLLHUP | POLLERR)) || lane_fill(l);
}

static short lane_events(const struct lane *out, const struct lane *in)
{
    return (short)((out->at < out->len || out->ended ? 0 : POLLIN) |
                   (in->at < in->len ? POLLOUT : 0));
}

static void lanes_relay(struct lane *up, struct lane *down)
{
    bool good = true;

    while (good && !(lane_is_done(up) && lane_is_done(down))) {
        struct pollfd p[2] = {{.fd = up->from, .events = lane_events(up, down)},
                              {.fd = down->from, .events = lane_events(down, up)}};

        for (size_t i = 0; i < ARRAY_LEN(p); i++)
            if (p[i].events == 0) /* else poll would report its hang-up again and again */
                p[i].fd = -1;
        if (poll(p, ARRAY_LEN(p), IDLE_MS) <= 0)
            return;
        good = lane_move(up, p[0].revents, p[1].revents) &&
               lane_move(down, p[1].revents, p[0].revents);
    }
}

bool index_tunnel_serve(int fd, const struct index_rules *rules, struct index_budget *budget)
{
    static const char welcome[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    struct err e = ERR_INIT;
    struct head head = {.len = 0};
    struct lane up = {.from = fd, .left = &budget->up};
    struct lane down = {.to = fd, .left = &budget->down};

    if (!read_head(fd, &head) || head.closes)
        return head.closes;
    if (!index_source_allows(rules->source, &head.host)) {
        request_refuse(fd, "403 Forbidden", "This host is none of the server's package indexes.");
        return false;
    }
    AUTO_FD int there = index_connect(fd, rules, &head.host);
    if (there < 0 || fdio_write_all(fd, welcome, sizeof welcome - 1, &e) < 0)
        return false;
    up.to = down.from = there;
    up.len = head.len - head.head_len;
    memcpy(up.data, head.data + head.head_len, up.len);
    atomic_fetch_sub(up.left, (int64_t)up.len);
    lanes_relay(&up, &down);
    return false;
}

/* ---- the proxy process ---- */

/* The arguments of the new process. */
struct order {
    struct index_source source;
    bool private_ok;
    pid_t caller;
};

/* Its descriptors, besides standard error. */
enum { LISTEN_FD = STDIN_FILENO, ORDER_FD = STDOUT_FILENO };

struct proxy {
    int listen_fd, signal_fd;
    const struct index_rules *rules;
    struct index_budget *budget;
    size_t tunnels;
};

/* Of a connection's process: the client asks for the end. */
#define STATUS_CLOSE 2

static void reap(struct proxy *p)
{
    struct signalfd_siginfo info;
    int status;

    while (read(p->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        ;
    while (waitpid(-1, &status, WNOHANG) > 0) {
        if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_CLOSE)
            _exit(0); /* its other connections die with it */
        p->tunnels--;
    }
}

static void open_tunnel(struct proxy *p)
{
    pid_t self = getpid();
    AUTO_FD int fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    pid_t pid = fd < 0 ? -1 : fork();

    if (pid == 0) {
        privsep_die_with(self);
        close(p->listen_fd);
        _exit(index_tunnel_serve(fd, p->rules, p->budget) ? STATUS_CLOSE : 0);
    }
    if (pid > 0)
        p->tunnels++;
}

__attribute__((noreturn)) static void serve(struct proxy *p)
{
    for (;;) {
        struct pollfd fds[] = {
            {.fd = p->signal_fd, .events = POLLIN},
            {.fd = p->tunnels < INDEX_TUNNELS_MAX ? p->listen_fd : -1, .events = POLLIN}};

        if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
            _exit(1);
        if (fds[0].revents)
            reap(p);
        if (fds[1].revents)
            open_tunnel(p);
    }
}

/* Signals act as usual but for the end of children, which is an event. */
static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    sigprocmask(SIG_SETMASK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int index_proxy_enter(const struct index_source *source, struct err *e)
{
    static const struct privsep_limit no_files = {RLIMIT_FSIZE, 0};
    uint16_t ports[INDEX_HOSTS_MAX + 2] = {[0] = DNS_PORT};
    const struct privsep_needs needs = {.files = privsep_network_files,
                                        .folder_fd = -1,
                                        .families = privsep_network_families,
                                        .ports = ports,
                                        .children = true};

    for (size_t i = 0; i < source->n_hosts; i++)
        ports[i + 1] = source->hosts[i].port;
    if (privsep_drop_rights() < 0 || privsep_bound(&no_files, 1) < 0)
        return err_set(e, ERR_INTERNAL, "rights cannot be given up");
    return privsep_confine(&needs, e);
}

int index_proxy_main(void)
{
    struct err e = ERR_INIT;
    struct order order;
    struct index_rules rules = {.source = &order.source};
    struct proxy p = {.listen_fd = LISTEN_FD, .rules = &rules};

    if (read(ORDER_FD, &order, sizeof order) != (ssize_t)sizeof order)
        return 1;
    if (index_proxy_enter(&order.source, &e) < 0) {
        log_error("the proxy of the package index does not start: %s", e.text);
        return 1;
    }
    privsep_die_with(order.caller);
    rules.private_ok = order.private_ok;
    p.signal_fd = open_signals();
    p.budget = mmap(NULL, sizeof *p.budget, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                    0);
    if (p.signal_fd < 0 || p.budget == MAP_FAILED)
        return 1;
    *p.budget = (struct index_budget){.down = INDEX_DOWN_MAX, .up = INDEX_UP_MAX};
    serve(&p);
}

/* ---- from outside ---- */

static int order_fd(const struct index_rules *rules, struct err *e)
{
    const struct order order = {*rules->source, rules->private_ok, getpid()};
    AUTO_FD int fd = memfd_create("index", MFD_CLOEXEC);

    if (fd < 0 || fdio_write_all(fd, &order, sizeof order, e) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return err_errno(e, "the rules of the index's proxy");
    return TAKE_FD(fd);
}

pid_t index_proxy_start(int listen_fd, const struct index_rules *rules, struct err *e)
{
    AUTO_FD int order = order_fd(rules, e);
    const int fds[] = {
        [LISTEN_FD] = listen_fd, [ORDER_FD] = order, [STDERR_FILENO] = STDERR_FILENO};

    return order < 0 ? -1 : privsep_start(INDEX_PROXY_COMMAND, fds, ARRAY_LEN(fds), e);
}
