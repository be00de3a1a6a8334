/* A store in a bucket of S3, or of a server that speaks its protocol: path style, requests signed
 * by libcurl (SigV4). Answers' bodies are taken as content or thrown away: only the status counts.
 */
#include "config.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/store/store.h"
#include "common/store/store_settings.h"

#include <curl/curl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define CONNECT_MS      5000
#define SLOW_BYTES_S    1024 /* slower than this for SLOW_S is an error */
#define SLOW_S          20
#define TRIES           3
#define RETRY_MS        200 /* then four times as much */
#define CREDENTIALS_MAX 1024
#define BUCKET_MIN      3
#define BUCKET_MAX      63
#define BUCKET_CHARS    "abcdefghijklmnopqrstuvwxyz0123456789.-"
#define PREFIX_CHARS    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/"
#define EMPTY_SUM       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct s3_store {
    struct store base;
    CURL *curl;
    char *url;         /* of the place; a key follows */
    char *provider;    /* CURLOPT_AWS_SIGV4 */
    char *credentials; /* KEY_ID:SECRET */
    char *ca;          /* NULL: none */
};

enum s3_method { S3_PUT, S3_GET, S3_DELETE };

struct s3_request {
    struct s3_store *store;
    enum s3_method method;
    const char *key;
    struct payload *c; /* NULL: DELETE */
    struct curl_slist *headers;
    struct err why; /* of a callback that stopped it */
};

static struct s3_store *self(struct store *s)
{
    return (struct s3_store *)(void *)s;
}

/* ---- the settings ---- */

int store_s3_check(const struct store_settings *s, struct err *e)
{
    const char *bucket = s->place + strlen(STORE_S3);
    const size_t len = strspn(bucket, BUCKET_CHARS);
    const char *prefix = bucket + len;

    if (len < BUCKET_MIN || len > BUCKET_MAX || (*prefix && *prefix != '/') ||
        prefix[strspn(prefix, PREFIX_CHARS)] || strstr(prefix, "//") || strstr(prefix, "/.") ||
        (*prefix && prefix[strlen(prefix) - 1] == '/'))
        return err_set(
            e, ERR_INVALID,
            "SANDBOX_STORE must be s3://BUCKET or s3://BUCKET/PREFIX, of letters, digits, "
            ". _ and -, without a slash at its end, not \"%.80s\"",
            s->place);
    if (*s->endpoint && strncmp(s->endpoint, "https://", 8) != 0 &&
        strncmp(s->endpoint, "http://", 7) != 0)
        return err_set(e, ERR_INVALID,
                       "SANDBOX_STORE_ENDPOINT must begin with https:// or http://");
    if (strpbrk(s->endpoint, " \t\"<>?#@"))
        return err_set(e, ERR_INVALID,
                       "SANDBOX_STORE_ENDPOINT must be a URL without user, query and fragment");
    if (s->region[strspn(s->region, BUCKET_CHARS)])
        return err_set(e, ERR_INVALID,
                       "SANDBOX_STORE_REGION must consist of small letters, digits and -");
    if (!*s->credentials)
        return err_set(e, ERR_INVALID,
                       "SANDBOX_STORE=s3://... needs SANDBOX_STORE_CREDENTIALS: a file with one "
                       "line KEY_ID:SECRET");
    return 0;
}

/* Caller frees; NULL: *e. */
static char *read_credentials(const char *path, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(CREDENTIALS_MAX);

    if (fdio_read_file(path, &text, e) < 0) {
        err_wrap(e, "SANDBOX_STORE_CREDENTIALS");
        return NULL;
    }
    while (text.len > 0 && strchr("\r\n", text.data[text.len - 1]))
        text.data[--text.len] = '\0';
    const char *colon = strchr(buf_str(&text), ':');
    if (!colon || colon == text.data || !colon[1] || strpbrk(text.data, " \t\r\n") ||
        strlen(text.data) != text.len) {
        err_set(e, ERR_INVALID,
                "SANDBOX_STORE_CREDENTIALS: the file must have one line KEY_ID:SECRET");
        return NULL;
    }
    return buf_take(&text);
}

/* ---- one request ---- */

static size_t give_data(char *to, size_t size, size_t n, void *ctx)
{
    struct s3_request *r = ctx;
    ssize_t got = payload_read(r->c, to, size * n, &r->why);

    return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

static int rewind_data(void *ctx, curl_off_t offset, int origin)
{
    struct s3_request *r = ctx;

    return offset == 0 && origin == SEEK_SET && payload_rewind(r->c, &r->why) == 0
               ? CURL_SEEKFUNC_OK
               : CURL_SEEKFUNC_FAIL;
}

static size_t take_data(char *data, size_t size, size_t n, void *ctx)
{
    struct s3_request *r = ctx;
    long status = 0;

    curl_easy_getinfo(r->store->curl, CURLINFO_RESPONSE_CODE, &status);
    if (r->method != S3_GET || (status != 200 && status != 206))
        return size * n; /* of an error, which the status tells */
    if (payload_is_full(r->c) || payload_write(r->c, data, size * n, &r->why) < 0)
        return 0;
    return size * n;
}

static bool set_strings(struct s3_request *r, const char *url)
{
    struct s3_store *s = r->store;
    char range[40];
    const struct {
        CURLoption option;
        const void *value;
    } pointers[] = {
        {CURLOPT_URL, url},
        {CURLOPT_PROTOCOLS_STR, strncmp(s->url, "http:", 5) == 0 ? "http" : "https"},
        {CURLOPT_PROXY, ""},
        {CURLOPT_USERAGENT, "sandcgi/" PACKAGE_VERSION},
        {CURLOPT_AWS_SIGV4, s->provider},
        {CURLOPT_USERPWD, s->credentials},
        {CURLOPT_CAINFO, s->ca},
        {CURLOPT_HTTPHEADER, r->headers},
        {CURLOPT_WRITEDATA, r},
        {CURLOPT_READDATA, r},
        {CURLOPT_SEEKDATA, r},
        {CURLOPT_RANGE, r->c && r->c->first ? range : NULL},
        {CURLOPT_CUSTOMREQUEST, r->method == S3_DELETE ? "DELETE" : NULL},
    };
    CURLcode rc = CURLE_OK;

    snprintf(range, sizeof range, "0-%llu", r->c ? (unsigned long long)r->c->size - 1 : 0);
    for (size_t i = 0; !rc && i < ARRAY_LEN(pointers); i++)
        if (pointers[i].value)
            rc = curl_easy_setopt(s->curl, pointers[i].option, pointers[i].value);
    return !rc;
}

static bool set_options(struct s3_request *r, const char *url)
{
    CURL *c = r->store->curl;
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        {CURLOPT_FOLLOWLOCATION, 0},
        {CURLOPT_NOSIGNAL, 1},
        {CURLOPT_NETRC, CURL_NETRC_IGNORED},
        {CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS},
        {CURLOPT_LOW_SPEED_LIMIT, SLOW_BYTES_S},
        {CURLOPT_LOW_SPEED_TIME, SLOW_S},
        {CURLOPT_UPLOAD, r->method == S3_PUT},
    };
    CURLcode rc = CURLE_OK;

    curl_easy_reset(c); /* the connection stays */
    for (size_t i = 0; !rc && i < ARRAY_LEN(numbers); i++)
        rc = curl_easy_setopt(c, numbers[i].option, numbers[i].value);
    if (!rc && r->method == S3_PUT)
        rc = curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->c->size);
    if (!rc)
        rc = curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_data);
    if (!rc)
        rc = curl_easy_setopt(c, CURLOPT_READFUNCTION, give_data);
    if (!rc)
        rc = curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, rewind_data);
    return !rc && set_strings(r, url);
}

/* Without a sum of its own libcurl would sign an upload as if it were empty. It signs all headers
 * that it is given, so that none may be one that it leaves out ("Expect:"). */
static bool make_headers(struct s3_request *r)
{
    AUTO_FREE char *sum = mem_printf("x-amz-content-sha256: %s",
                                     r->method == S3_PUT ? r->c->sum : EMPTY_SUM);
    const char *const lines[] = {sum, "Content-Type: application/octet-stream"};

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct curl_slist *more = curl_slist_append(r->headers, lines[i]);
        if (!more)
            return false;
        r->headers = more;
    }
    return true;
}

/* ---- its outcome ---- */

static int refused(long status, struct err *e)
{
    if (status == 404)
        return err_set(e, ERR_NOT_FOUND, "the store does not have it");
    if (status == 401 || status == 403)
        return err_set(e, ERR_UNAVAILABLE,
                       "the store refuses the request (status %ld): look at "
                       "SANDBOX_STORE_CREDENTIALS, the bucket's rights and this machine's clock",
                       status);
    if (status >= 300 && status < 400)
        return err_set(e, ERR_UNAVAILABLE,
                       "the store sends us elsewhere (status %ld): look at SANDBOX_STORE_ENDPOINT "
                       "and SANDBOX_STORE_REGION",
                       status);
    return err_set(e, ERR_UNAVAILABLE, "the store answers with status %ld", status);
}

static bool is_worth_a_retry(CURLcode rc, long status)
{
    return rc ? rc != CURLE_PEER_FAILED_VERIFICATION && rc != CURLE_ABORTED_BY_CALLBACK
              : status == 429 || status >= 500;
}

/* 0; 1: again; -1. */
static int perform_once(struct s3_request *r, const char *url, struct err *e)
{
    long status = 0;

    if (r->c && (payload_rewind(r->c, e) < 0))
        return -1;
    if (r->method == S3_GET && r->c->fd < 0)
        buf_reset(r->c->text);
    if (!set_options(r, url))
        return err_set(e, ERR_INTERNAL, "libcurl does not take a request to the store");
    CURLcode rc = curl_easy_perform(r->store->curl);
    curl_easy_getinfo(r->store->curl, CURLINFO_RESPONSE_CODE, &status);
    if (r->why.kind != ERR_NONE) {
        *e = r->why;
        return -1;
    }
    if (r->method == S3_GET && rc == CURLE_WRITE_ERROR && payload_is_full(r->c))
        rc = CURLE_OK;
    if (rc)
        err_set(e, ERR_UNAVAILABLE, "the store does not answer: %s", curl_easy_strerror(rc));
    else if (status / 100 == 2 || (r->method == S3_DELETE && status == 404))
        return 0;
    else
        refused(status, e);
    return is_worth_a_retry(rc, status) ? 1 : -1;
}

static int perform(struct store *s, enum s3_method method, const char *key, struct payload *c,
                   struct err *e)
{
    struct s3_request r = {.store = self(s), .method = method, .key = key, .c = c};
    AUTO_FREE char *url = mem_printf("%s/%s", r.store->url, key);
    int rc = make_headers(&r) ? 1 : -1, pause_ms = RETRY_MS;

    if (rc < 0)
        err_set(e, ERR_INTERNAL, "libcurl does not take a request to the store");
    for (int i = 0; i < TRIES && rc == 1; i++) {
        if (i > 0)
            poll(NULL, 0, pause_ms);
        pause_ms *= i > 0 ? 4 : 1;
        rc = perform_once(&r, url, e);
    }
    curl_slist_free_all(r.headers);
    return rc == 0 ? 0 : -1;
}

static int s3_put(struct store *s, const char *key, struct payload *c, struct err *e)
{
    return perform(s, S3_PUT, key, c, e);
}

static int s3_get(struct store *s, const char *key, struct payload *c, struct err *e)
{
    return perform(s, S3_GET, key, c, e);
}

static int s3_remove(struct store *s, const char *key, struct err *e)
{
    return perform(s, S3_DELETE, key, NULL, e);
}

static void s3_free(struct store *s)
{
    struct s3_store *store = self(s);

    curl_easy_cleanup(store->curl);
    if (store->credentials)
        explicit_bzero(store->credentials, strlen(store->credentials));
    free(store->credentials);
    free(store->provider);
    free(store->url);
    free(store->ca);
    free(store);
}

static const struct store_ops s3_ops = {
    .put = s3_put, .get = s3_get, .remove = s3_remove, .free = s3_free};

struct store *store_s3_new(const struct store_settings *s, struct err *e)
{
    AUTO_FREE char *aws = mem_printf("https://s3.%s.amazonaws.com", s->region);
    const char *endpoint = *s->endpoint ? s->endpoint : aws;
    size_t len = strlen(endpoint);
    struct s3_store *store = mem_alloc(sizeof *store);
    AUTO_STORE struct store *made = &store->base;

    while (len > 0 && endpoint[len - 1] == '/')
        len--;
    store->base.ops = &s3_ops;
    store->url = mem_printf("%.*s/%s", (int)len, endpoint, s->place + strlen(STORE_S3));
    store->provider = mem_printf("aws:amz:%s:s3", s->region);
    store->ca = *s->ca ? mem_strdup(s->ca) : NULL;
    store->credentials = read_credentials(s->credentials, e);
    if (!store->credentials)
        return NULL;
    store->curl = curl_easy_init();
    if (store->curl)
        return TAKE_PTR(made);
    err_set(e, ERR_INTERNAL, "libcurl does not start");
    return NULL;
}
