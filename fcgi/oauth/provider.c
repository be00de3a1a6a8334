#include "config.h"

#include "fcgi/oauth/provider.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "fcgi/oauth/oauth_settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define REFRESH_MS       3600000
#define PAUSE_MIN_MS     5000
#define PAUSE_MAX_MS     300000
#define TIMEOUT_MS       10000
#define LOOKS_MAX        3     /* for keys that tokens name; one more … */
#define LOOK_EACH_MS     60000 /* … after this */
#define FILES_EACH_MS    250
#define METADATA_MAX     (128u * 1024)
#define METADATA_DEPTH   8
#define REVOKED_MAX      (1u << 20)
#define URL_MAX          2048
#define WELL_KNOWN       "/.well-known/"
#define PROBLEM_AT_FIRST "the keys of the issuer have not been fetched yet"

/* What tells a changed file. */
struct file_mark {
    ino_t ino;
    off_t size;
    int64_t changed_ns;
};

/* A file of builtin's. */
struct kept_file {
    const char *name;
    size_t max; /* bytes */
    int (*take)(struct provider *p, const char *text, size_t len, struct err *e);
    struct file_mark mark;                       /* of what was taken */
    char problem[sizeof((struct err *)0)->text]; /* as logged; "": none */
};

struct provider {
    const struct settings *s;
    struct talks *talks;
    int state_fd;
    void (*changed)(void *ctx);
    void *ctx;
    struct jwks keys;
    char *keys_text; /* the set as it came, to see whether another one is another */
    json_t *revoked; /* list of texts, sorted by nothing: there are few */
    char problem[256];
    /* fetching */
    bool fetching;
    unsigned place; /* of the metadata: which well-known address is tried */
    char *keys_url; /* NULL: the metadata are needed first */
    struct deadline fetch_at;
    int64_t pause_ms, looks_filled_ms;
    unsigned looks, fetches;
    /* files */
    struct deadline files_at;
    struct kept_file files[2];
};

static int take_revoked(struct provider *p, const char *text, size_t len, struct err *e);
static void on_metadata(void *ctx, const char *text, size_t len, const char *why);
static void on_keys(void *ctx, const char *text, size_t len, const char *why);

/* ---- the keys ---- */

static int take_keys(struct provider *p, const char *text, size_t len, struct err *e)
{
    bool other = !p->keys_text || strlen(p->keys_text) != len ||
                 memcmp(p->keys_text, text, len) != 0;

    if (other && jwks_parse(text, len, &p->keys, e) < 0)
        return -1;
    if (other) {
        free(p->keys_text);
        p->keys_text = mem_strndup(text, len);
        log_info("the issuer's keys are there: %zu", p->keys.n);
    }
    p->problem[0] = '\0';
    return 0;
}

/* ---- fetching ---- */

static void end_fetch(struct provider *p, const char *problem)
{
    p->fetching = false;
    p->place = 0;
    if (!problem) {
        p->pause_ms = 0;
        p->fetch_at = deadline_in_ms(REFRESH_MS);
    } else {
        log_warn("SANDCGI_OAUTH=%s: %s; %s", p->s->oauth, problem,
                 p->keys.n > 0 ? "the keys that are known stay" : "no access token is valid");
        if (p->keys.n == 0)
            snprintf(p->problem, sizeof p->problem, "the keys of the issuer could not be fetched");
        free(TAKE_PTR(p->keys_url));
        p->pause_ms = p->pause_ms * 2 < PAUSE_MIN_MS   ? PAUSE_MIN_MS
                      : p->pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS
                                                       : p->pause_ms * 2;
        p->fetch_at = deadline_in_ms(p->pause_ms);
    }
    p->changed(p->ctx);
}

/* Bytes of scheme and authority. */
static size_t origin_len(const char *url)
{
    const char *host = strstr(url, "://") + 3;

    return (size_t)(host - url) + strcspn(host, "/?");
}

static bool same_host(const char *a, const char *b)
{
    size_t n = origin_len(a);

    return n == origin_len(b) && strncasecmp(a, b, n) == 0;
}

static void begin(struct provider *p, const char *url, size_t max, talk_done *done)
{
    const struct talk_request request = {.url = url,
                                         .may_be_private = same_host(url, p->s->oauth),
                                         .max_bytes = max,
                                         .timeout_ms = TIMEOUT_MS,
                                         .done = done,
                                         .ctx = p};
    struct err e = ERR_INIT;

    p->fetching = true;
    p->fetches++;
    if (talks_begin(p->talks, &request, &e) < 0)
        end_fetch(p, e.text);
}

/* The addresses at which metadata may be, in the order of MCP's specification. false: there is no
 * such one. */
static bool metadata_url(const struct provider *p, char out[URL_MAX])
{
    const char *issuer = p->s->access.issuer;
    int origin = (int)origin_len(issuer), path = (int)strlen(issuer) - origin;

    while (path > 0 && issuer[origin + path - 1] == '/')
        path--;
    const char *rest = issuer + origin;
    switch (p->place) {
    case 0:
        snprintf(out, URL_MAX, "%.*s" WELL_KNOWN "oauth-authorization-server%.*s", origin, issuer,
                 path, rest);
        return true;
    case 1:
        snprintf(out, URL_MAX, "%.*s" WELL_KNOWN "openid-configuration%.*s", origin, issuer, path,
                 rest);
        return true;
    case 2:
        snprintf(out, URL_MAX, "%.*s%.*s" WELL_KNOWN "openid-configuration", origin, issuer, path,
                 rest);
        return path > 0;
    default:
        return false;
    }
}

static void fetch_begin(struct provider *p)
{
    char url[URL_MAX];

    if (p->keys_url)
        begin(p, p->keys_url, JWKS_TEXT_MAX, on_keys);
    else if (metadata_url(p, url))
        begin(p, url, METADATA_MAX, on_metadata);
}

/* The address of the keys. NULL: *e. */
static const char *read_metadata(const struct provider *p, const json_t *metadata, struct err *e)
{
    const char *issuer = json_get_string(metadata, "issuer");
    const char *url = json_get_string(metadata, "jwks_uri");

    if (!issuer || strcmp(issuer, p->s->access.issuer) != 0) {
        err_set(e, ERR_INVALID, "its metadata name another issuer: %.200s",
                issuer ? issuer : "none");
        return NULL;
    }
    if (!url || strlen(url) >= URL_MAX || !oauth_url_is_ok(url) ||
        (oauth_url_is_plain(url) && !oauth_url_is_plain(issuer))) {
        err_set(e, ERR_INVALID, "its metadata have no https:// address of keys (jwks_uri)");
        return NULL;
    }
    return url;
}

static void on_metadata(void *ctx, const char *text, size_t len, const char *why)
{
    struct provider *p = ctx;
    struct err e = ERR_INIT;
    char url[URL_MAX];
    json_auto_t *metadata = text ? json_parse(text, len, METADATA_DEPTH, &e) : NULL;
    const char *keys_url = metadata ? read_metadata(p, metadata, &e) : NULL;

    if (keys_url) {
        free(p->keys_url);
        p->keys_url = mem_strdup(keys_url);
        fetch_begin(p);
        return;
    }
    p->place++;
    if (!text && metadata_url(p, url)) {
        fetch_begin(p);
        return;
    }
    end_fetch(p, text ? e.text : why);
}

static void on_keys(void *ctx, const char *text, size_t len, const char *why)
{
    struct provider *p = ctx;
    struct err e = ERR_INIT;

    if (!text || take_keys(p, text, len, &e) < 0)
        end_fetch(p, text ? e.text : why);
    else
        end_fetch(p, NULL);
}

bool provider_look(struct provider *p, bool may_begin)
{
    int64_t now = clock_mono_ms();

    if (p->state_fd >= 0 || p->fetching || !may_begin)
        return p->fetching;
    if (now - p->looks_filled_ms >= LOOK_EACH_MS) {
        p->looks += p->looks < LOOKS_MAX;
        p->looks_filled_ms = now;
    }
    if (p->looks == 0 || p->pause_ms > 0) /* after a failure the pauses count */
        return false;
    p->looks--;
    fetch_begin(p);
    return p->fetching;
}

/* ---- files of builtin ---- */

/* 1: the file is another one than before, and in text; 0: it is not, or not there. */
static int read_if_changed(const struct provider *p, const struct kept_file *file,
                           struct file_mark *out_mark, struct buf *text, struct err *e)
{
    AUTO_FD int fd = openat(p->state_fd, file->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const struct file_mark *before = &file->mark;
    struct stat st;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(e, "it cannot be opened");
    *out_mark = (struct file_mark){st.st_ino, st.st_size, clock_ns_of(st.st_mtim)};
    if (out_mark->ino == before->ino && out_mark->size == before->size &&
        out_mark->changed_ns == before->changed_ns)
        return 0;
    return fdio_read_to_end(fd, text, e) < 0 ? -1 : 1;
}

static int take_revoked(struct provider *p, const char *text, size_t len, struct err *e)
{
    json_auto_t *list = json_parse(text, len, 2, e);

    if (!json_is_array(list))
        return list ? err_set(e, ERR_INVALID, "it is no list") : -1;
    json_decref(p->revoked);
    p->revoked = json_incref(list); /* the other reference goes */
    return 0;
}

/* A file counts as known when it has been taken in: one that could not be is tried again, and what
 * was known before stays until then. true: something new is known. */
static bool look_at_file(struct provider *p, struct kept_file *file)
{
    AUTO_BUF struct buf text = BUF_INIT(file->max);
    struct err e = ERR_INIT;
    struct file_mark mark;
    int rc = read_if_changed(p, file, &mark, &text, &e);

    if (rc > 0 && (rc = file->take(p, buf_str(&text), text.len, &e)) == 0) {
        file->mark = mark;
        file->problem[0] = '\0';
        return true;
    }
    if (rc < 0 && strcmp(file->problem, e.text) != 0) {
        log_error("%s: %s; what was known before stays", file->name, e.text);
        snprintf(file->problem, sizeof file->problem, "%s", e.text);
    }
    return false;
}

static void look_at_files(struct provider *p)
{
    bool changed = false;

    for (size_t i = 0; i < ARRAY_LEN(p->files); i++)
        changed |= look_at_file(p, &p->files[i]);
    if (changed)
        p->changed(p->ctx);
}

/* ---- the whole ---- */

struct provider *provider_new(const struct settings *s, struct talks *talks, int state_fd,
                              void (*changed)(void *ctx), void *ctx)
{
    struct provider *p = mem_alloc(sizeof *p);

    *p = (struct provider){
        .s = s,
        .talks = talks,
        .state_fd = state_fd,
        .changed = changed,
        .ctx = ctx,
        .looks = LOOKS_MAX,
        .looks_filled_ms = clock_mono_ms(),
        .fetch_at = state_fd < 0 ? deadline_in_ms(0) : DEADLINE_NEVER,
        .files = {{.name = PROVIDER_KEYS_FILE, .max = JWKS_TEXT_MAX, .take = take_keys},
                  {.name = PROVIDER_REVOKED_FILE, .max = REVOKED_MAX, .take = take_revoked}},
        .files_at = state_fd < 0 ? DEADLINE_NEVER : deadline_in_ms(0)};
    snprintf(p->problem, sizeof p->problem, PROBLEM_AT_FIRST);
    return p;
}

void provider_free(struct provider *p)
{
    if (!p)
        return;
    jwks_clear(&p->keys);
    json_decref(p->revoked);
    free(p->keys_text);
    free(p->keys_url);
    free(p);
}

struct deadline provider_tick(struct provider *p)
{
    if (deadline_passed(p->files_at)) {
        look_at_files(p);
        p->files_at = deadline_in_ms(FILES_EACH_MS);
    }
    if (!p->fetching && deadline_passed(p->fetch_at)) {
        free(TAKE_PTR(p->keys_url)); /* it may have moved */
        fetch_begin(p);
    }
    return deadline_min(p->files_at, p->fetching ? DEADLINE_NEVER : p->fetch_at);
}

const struct jwks *provider_keys(const struct provider *p)
{
    return &p->keys;
}

bool provider_has_revoked(const struct provider *p, const char *grant)
{
    return *grant && json_index_of(p->revoked, grant) < json_array_size(p->revoked);
}

const char *provider_problem(const struct provider *p)
{
    return p->problem;
}

unsigned provider_fetches(const struct provider *p)
{
    return p->fetches;
}
