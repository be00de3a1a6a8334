#include "config.h"

#include "common/engine/docker_http.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/base/metrics.h"
#include "common/base/parse.h"
#include "common/base/utf8.h"
#include "common/rpc/json.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WAIT_MS         1000  /* libcurl wakes up by itself when a timeout of its own is nearer */
#define WORDS_MAX       300   /* of an engine's message that go into an error */
#define PODMAN_INFO_MS  10000 /* it looks for programs meanwhile */
#define PODMAN_INFO_MAX ((size_t)256 * 1024)

#define DEFAULT_HOST "unix:///var/run/docker.sock"

/* Where the engine listens, in the form that libcurl wants. */
struct docker_address {
    char *host;      /* as configured, for messages */
    char *unix_path; /* NULL: tcp */
    char *base;      /* "http://localhost", "https://engine:2376" */
    bool tls;
    char *ca, *cert, *key; /* NULL: libcurl's default CA store, no client certificate */
};

struct docker_http {
    struct docker_address address;
    CURL *curl;
    CURLM *multi; /* curl is in it during a request; it keeps the connection */
    struct docker_attend attend;
    struct curl_slist *headers;
    char why[CURL_ERROR_SIZE];
    struct deadline until;     /* of all requests; never: each has its own alone */
    struct engine_facts facts; /* version "": not agreed on yet */
    char seen_version[16];     /* the Api-Version header of the last reply */
    char seen_server[16];      /* the beginning of its Server header */
};

/* ---- the address ---- */

static void docker_address_clear(struct docker_address *a)
{
    free(a->host);
    free(a->unix_path);
    free(a->base);
    free(a->ca);
    free(a->cert);
    free(a->key);
}

/* The path of cert_path/name, which has to be readable. */
static int find_pem(const char *folder, const char *name, char **out, struct err *e)
{
    AUTO_FREE char *path = mem_printf("%s/%s", folder, name);

    if (access(path, R_OK) < 0) {
        err_errno(e, "DOCKER_CERT_PATH: %s", path);
        e->kind = ERR_INVALID;
        return -1;
    }
    *out = TAKE_PTR(path);
    return 0;
}

static int init_unix(struct docker_address *a, const char *path, struct err *e)
{
    if (path[0] != '/' || strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return err_set(
            e, ERR_INVALID,
            "DOCKER_HOST: the socket's path must be absolute and shorter than 108 bytes");
    a->unix_path = mem_strdup(path);
    a->base = mem_strdup("http://localhost");
    return 0;
}

/* "name:port", "1.2.3.4:port", "[::1]:port" and nothing else that a URL could carry. */
static int init_tcp(struct docker_address *a, const char *authority, struct err *e)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  ".-:[]";
    const char *colon = strrchr(authority, ':');
    uint64_t port;

    if (!colon || colon == authority || authority[strspn(authority, allowed)] != '\0' ||
        parse_u64(colon + 1, 1, 65535, &port) < 0)
        return err_set(e, ERR_INVALID, "DOCKER_HOST: expected tcp://HOST:PORT");
    a->base = mem_printf("%s://%s", a->tls ? "https" : "http", authority);
    return 0;
}

static int docker_address_init(struct docker_address *a, const struct engine_address *from,
                               struct err *e)
{
    const char *certs = from->cert_path ? from->cert_path : "";

    a->host = mem_strdup(from->host && *from->host ? from->host : DEFAULT_HOST);
    if (strncmp(a->host, "unix://", 7) == 0)
        return init_unix(a, a->host + 7, e);
    if (strncmp(a->host, "tcp://", 6) != 0)
        return err_set(e, ERR_INVALID, "DOCKER_HOST: expected unix:///PATH or tcp://HOST:PORT");
    a->tls = from->tls_verify || *certs;
    if (*certs &&
        (find_pem(certs, "ca.pem", &a->ca, e) < 0 || find_pem(certs, "cert.pem", &a->cert, e) < 0 ||
         find_pem(certs, "key.pem", &a->key, e) < 0))
        return -1;
    return init_tcp(a, a->host + 6, e);
}

int docker_address_check(const struct engine_address *address, struct err *e)
{
    struct docker_address a = {0};
    const int rc = docker_address_init(&a, address, e);

    docker_address_clear(&a);
    return rc;
}

/* ---- the caller's descriptor ---- */

void docker_attend_begin(struct docker_attend *a, const struct engine_attend *caller)
{
    *a = (struct docker_attend){.caller = caller};
}

void docker_attend_end(struct docker_attend *a)
{
    a->caller = NULL;
}

static int docker_attend_fd(const struct docker_attend *a)
{
    return a->caller && !a->cancelled ? a->caller->fd : -1;
}

static void docker_attend_tick(struct docker_attend *a)
{
    if (a->caller && !a->cancelled && !a->caller->tick(a->caller->ctx))
        a->cancelled = true;
}

int docker_attend_poll(struct docker_attend *a, struct pollfd *own, int timeout_ms)
{
    struct pollfd p[2] = {*own, {.fd = docker_attend_fd(a), .events = POLLIN | POLLRDHUP}};
    int n = poll(p, 2, timeout_ms);

    own->revents = n > 0 ? p[0].revents : 0;
    if (n > 0 && p[1].revents)
        docker_attend_tick(a);
    return n < 0 && errno != EINTR ? -1 : 0;
}

/* ---- requests ---- */

/* libcurl's own sockets would be inherited by whatever is executed later. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)ctx;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t take_body(char *data, size_t one, size_t len, void *ctx)
{
    struct buf *out = ctx;

    (void)one;
    buf_add(out, data, len);
    return buf_ok(out) ? len : 0;
}

/* The value of the header line data, if that is the header name ("Server:"); cut to what fits. */
static void take_value(const char *data, size_t len, const char *name, char *out, size_t cap)
{
    size_t from = strlen(name), to = len;

    if (len <= from || strncasecmp(data, name, from) != 0)
        return;
    while (from < to && (data[from] == ' ' || data[from] == '\t'))
        from++;
    while (to > from && (unsigned char)data[to - 1] <= ' ')
        to--;
    snprintf(out, cap, "%.*s", (int)(to - from), data + from);
}

static size_t take_header(char *data, size_t one, size_t len, void *ctx)
{
    struct docker_http *h = ctx;

    (void)one;
    take_value(data, len, "Api-Version:", h->seen_version, sizeof h->seen_version);
    take_value(data, len, "Server:", h->seen_server, sizeof h->seen_server);
    return len;
}

/* The options of every connection to this engine. */
static void curl_setup(struct docker_http *h, CURL *c)
{
    const struct docker_address *a = &h->address;

    h->why[0] = '\0';
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->why);
    curl_easy_setopt(c, CURLOPT_PROXY, "");
    curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)DOCKER_CONNECT_MS);
    curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    if (a->unix_path)
        curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, a->unix_path);
    if (!a->tls)
        return;
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
    if (a->ca) {
        curl_easy_setopt(c, CURLOPT_CAINFO, a->ca);
        curl_easy_setopt(c, CURLOPT_SSLCERT, a->cert);
        curl_easy_setopt(c, CURLOPT_SSLKEY, a->key);
    }
}

bool docker_http_set_up(void)
{
    return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

struct docker_http *docker_http_new(const struct engine_address *address, struct err *e)
{
    struct docker_http *h = mem_alloc(sizeof *h);

    if (docker_address_init(&h->address, address, e) < 0) {
        docker_http_free(h);
        return NULL;
    }
    h->facts = address->facts;
    h->until = address->limit_ms ? deadline_in_ms(address->limit_ms) : DEADLINE_NEVER;
    if (docker_http_set_up()) {
        h->curl = curl_easy_init();
        h->multi = curl_multi_init();
    }
    h->headers = curl_slist_append(NULL, "Content-Type: application/json");
    if (!h->curl || !h->multi || !h->headers || !curl_slist_append(h->headers, "Expect:")) {
        err_set(e, ERR_INTERNAL, "libcurl cannot be initialised");
        docker_http_free(h);
        return NULL;
    }
    return h;
}

void docker_http_free(struct docker_http *h)
{
    if (!h)
        return;
    if (h->curl)
        curl_easy_cleanup(h->curl);
    if (h->multi)
        curl_multi_cleanup(h->multi);
    curl_slist_free_all(h->headers);
    docker_address_clear(&h->address);
    free(h);
}

struct docker_attend *docker_http_attend(struct docker_http *h)
{
    return &h->attend;
}

const struct engine_facts *docker_http_facts(const struct docker_http *h)
{
    return &h->facts;
}

/* The error of a failed transfer. */
static int transfer_failed(struct docker_http *h, CURLcode code, const struct buf *out,
                           struct err *e)
{
    const char *why = h->why[0] ? h->why : curl_easy_strerror(code);
    long sys = 0;

    if (h->address.unix_path && code == CURLE_COULDNT_CONNECT &&
        curl_easy_getinfo(h->curl, CURLINFO_OS_ERRNO, &sys) == CURLE_OK && sys != 0)
        why = strerror((int)sys); /* libcurl speaks of localhost and a port */
    if (out && !buf_ok(out))
        return err_set(e, ERR_LIMIT, "the container engine's reply is over %zu bytes", out->max);
    h->facts = (struct engine_facts){0}; /* another version may come back */
    err_set(e, ERR_UNAVAILABLE, "the container engine at %s cannot be reached: %s", h->address.host,
            why);
    e->sys = (int)sys;
    return -1;
}

/* Waits until the transfer can go on or its time is up, and polls the caller's descriptor. */
static CURLMcode wait_tick(struct docker_http *h)
{
    struct curl_waitfd other = {.fd = docker_attend_fd(&h->attend), .events = CURL_WAIT_POLLIN};
    unsigned n = other.fd >= 0;
    CURLMcode code = curl_multi_poll(h->multi, &other, n, WAIT_MS, NULL);
    struct pollfd none = {.fd = -1};

    /* libcurl wakes up at a mere hang-up, but does not report it. */
    if (code == CURLM_OK && n > 0 && docker_attend_poll(&h->attend, &none, 0) < 0)
        return CURLM_INTERNAL_ERROR;
    return code;
}

/* As curl_easy_perform, polling the caller's descriptor, too. */
static CURLcode perform(struct docker_http *h)
{
    CURLMcode code = curl_multi_add_handle(h->multi, h->curl);
    CURLcode result = CURLE_FAILED_INIT;
    CURLMsg *message;
    int running = 1, left;

    while (code == CURLM_OK && running) {
        code = curl_multi_perform(h->multi, &running);
        if (code == CURLM_OK && running)
            code = wait_tick(h);
    }
    message = code == CURLM_OK ? curl_multi_info_read(h->multi, &left) : NULL;
    if (message && message->msg == CURLMSG_DONE)
        result = message->data.result;
    curl_multi_remove_handle(h->multi, h->curl);
    return result;
}

/* One request to a complete path. */
static int http_request(struct docker_http *h, const char *method, const char *path,
                        const char *body, int timeout_ms, struct buf *out, struct err *e)
{
    AUTO_FREE char *url = mem_printf("%s%s", h->address.base, path);
    CURL *c = h->curl;
    long status = 0;

    curl_easy_reset(c);
    curl_setup(h, c);
    buf_reset(out);
    curl_easy_setopt(c, CURLOPT_URL, url);
    if (deadline_poll_ms(h->until) >= 0 && deadline_poll_ms(h->until) < timeout_ms)
        timeout_ms = deadline_poll_ms(h->until) + 1; /* 0 would be none */
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, h->headers);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, out);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, h);
    if (strcmp(method, "POST") == 0) {
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, body ? body : "");
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(body ? strlen(body) : 0));
    } else if (strcmp(method, "GET") != 0) {
        curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
    }
    const CURLcode code = perform(h);
    if (code != CURLE_OK)
        return transfer_failed(h, code, out, e);
    curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

static int choose_version(struct docker_http *h, struct err *e)
{
    uint64_t minor;

    if (strncmp(h->seen_version, "1.", 2) != 0 ||
        parse_u64(h->seen_version + 2, 0, 9999, &minor) < 0)
        return err_set(e, ERR_UNAVAILABLE, "%s does not answer as a container engine",
                       h->address.host);
    if (minor < DOCKER_API_MINOR_LO)
        return err_set(e, ERR_UNAVAILABLE,
                       "the container engine at %s is too old: API 1.%d, needed is 1.%d",
                       h->address.host, (int)minor, DOCKER_API_MINOR_LO);
    if (minor > DOCKER_API_MINOR_HI)
        minor = DOCKER_API_MINOR_HI;
    snprintf(h->facts.version, sizeof h->facts.version, "/v1.%d", (int)minor);
    return 0;
}

/* Podman's own API says it, the one that is compatible with Docker's does not. A Podman that does
 * not let that one be read is taken for root's. */
static int look_at_podman(struct docker_http *h, struct err *e)
{
    AUTO_BUF struct buf reply = BUF_INIT(PODMAN_INFO_MAX);
    AUTO_FREE char *path = mem_printf("%s/libpod/info", h->facts.version);
    struct err unread = ERR_INIT;
    int status = http_request(h, "GET", path, NULL, PODMAN_INFO_MS, &reply, e);
    json_auto_t *info = status == 200
                            ? json_parse(buf_str(&reply), reply.len, JSON_MAX_DEPTH, &unread)
                            : NULL;
    const json_t *host = json_object_get(info, "host");

    if (status < 0) {
        h->facts = (struct engine_facts){0};
        return -1;
    }
    h->facts.rootless = json_get_bool(json_object_get(host, "security"), "rootless", 0);
    return 0;
}

int docker_http_ready(struct docker_http *h, struct err *e)
{
    AUTO_BUF struct buf reply = BUF_INIT(4096);

    if (h->facts.version[0])
        return 0;
    h->seen_version[0] = h->seen_server[0] = '\0';
    const int status = http_request(h, "GET", "/_ping", NULL, 5000, &reply, e);
    if (status >= 400) {
        docker_http_check(status, reply.data, reply.len, e);
        e->kind = ERR_UNAVAILABLE;
    }
    if (status < 0 || status >= 400 || choose_version(h, e) < 0)
        return -1;
    h->facts.podman = strncmp(h->seen_server, "Libpod/", 7) == 0;
    return h->facts.podman ? look_at_podman(h, e) : 0;
}

int docker_http_call(struct docker_http *h, const char *method, const char *path, const char *body,
                     int timeout_ms, struct buf *out, struct err *e)
{
    if (docker_http_ready(h, e) < 0)
        return -1;
    AUTO_FREE char *versioned = mem_printf("%s%s", h->facts.version, path);
    int status = http_request(h, method, versioned, body, timeout_ms, out, e);
    metrics_add(METRIC_ENGINE_CALLS,
                status < 0      ? "result=\"none\""
                : status >= 400 ? "result=\"error\""
                                : "result=\"ok\"",
                1);
    return status;
}

int docker_http_check(int status, const char *body, size_t len, struct err *e)
{
    if (status < 400)
        return status < 0 ? -1 : 0;
    struct err ignored = ERR_INIT;
    json_auto_t *reply = len > 0 ? json_parse(body, len, 8, &ignored) : NULL;
    const char *message = reply ? json_get_string(reply, "message") : NULL;
    enum err_kind kind = status == 404 ? ERR_NOT_FOUND : ERR_REFUSED;
    char words[WORDS_MAX + 1];
    size_t n;

    if (!message || !*message)
        return err_set(e, kind, "the container engine answered %d", status);
    n = utf8_cut(message, strlen(message), WORDS_MAX);
    for (size_t i = 0; i < n; i++)
        words[i] = (unsigned char)message[i] < ' ' ? ' ' : message[i];
    words[n] = '\0';
    return err_set(e, kind, "the container engine answered %d: %s", status, words);
}

void docker_http_escape(struct buf *out, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";

    for (; *text; text++) {
        if (strchr(plain, *text))
            buf_add_char(out, *text);
        else
            buf_addf(out, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

void *docker_http_raw(struct docker_http *h, struct err *e)
{
    CURL *c = curl_easy_init();
    CURLcode code;

    if (!c) {
        err_set(e, ERR_INTERNAL, "libcurl cannot be initialised");
        return NULL;
    }
    curl_setup(h, c);
    curl_easy_setopt(c, CURLOPT_URL, h->address.base);
    curl_easy_setopt(c, CURLOPT_CONNECT_ONLY, 1L);
    code = curl_easy_perform(c);
    if (code != CURLE_OK) {
        transfer_failed(h, code, NULL, e);
        curl_easy_cleanup(c);
        return NULL;
    }
    /* The buffer belongs to h, which may be gone before c. */
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, NULL);
    return c;
}
