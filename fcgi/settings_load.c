/* Reading the settings: their rows, then what they may be, one by one and together, then what is
 * derived from them. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/crypto.h"
#include "common/base/machine.h"
#include "common/base/mem.h"
#include "common/base/node.h"
#include "common/base/parse.h"
#include "common/base/sock.h"
#include "common/sandbox/sandbox.h"
#include "common/store/kinds.h"
#include "common/tools/tools.h"
#include "fcgi/process/control.h"
#include "fcgi/settings.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define SECRET_MIN 32
#define ENV_MAX    (64u << 10) /* bytes of a run's environment, names and values together */
#define IMAGE_MAX  (1u << 20)  /* bytes of a picture that is returned inline */
/* "auto". A program's memory is at most one part in so many of the machine's. */
#define AUTO_MEMORY     (1ull << 30)
#define AUTO_SHARE      4
#define AUTO_MEMORY_MIN (64ull << 20)
#define AUTO_CPU_MILLI  1000
#define AUTO_TIMEOUT_MS 300000
/* What the first server with the tools of runner gave. */
#define RUNNER_MEMORY    (256ull << 20)
#define RUNNER_CPU_MILLI 500

/* Builds for tests have all rows of the table. */
#if defined WITH_SANITIZER || defined TEST_SETTINGS
#define FIXED_TOO true
#else
#define FIXED_TOO false
#endif

#define PREFIX_CHARS                                                                               \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-" /* of tools' names */

static int check_secret(const char *name, const char *value, struct err *e)
{
    if (strlen(value) < SECRET_MIN)
        return err_set(e, ERR_INVALID,
                       "%s is shorter than %d characters; generate one with: openssl rand -hex 32",
                       name, SECRET_MIN);
    if (strspn(value, (char[2]){value[0], '\0'}) == strlen(value) || strstr(value, "change") ||
        strstr(value, "CHANGE") || strstr(value, "your-") || strstr(value, "example"))
        return err_set(e, ERR_INVALID,
                       "%s is an example value; generate one with: openssl rand -hex 32", name);
    return 0;
}

/* The end of the last day, or the moment. */
static int check_old_secret(struct settings *s, struct err *e)
{
    if (!*s->old_secret && !*s->old_secret_date)
        return 0;
    if (!*s->old_secret || !*s->old_secret_date)
        return err_set(e, ERR_INVALID, "%s is set without %s; set both or none",
                       *s->old_secret ? "FILE_SECRET_OLD" : "FILE_SECRET_OLD_UNTIL",
                       *s->old_secret ? "FILE_SECRET_OLD_UNTIL" : "FILE_SECRET_OLD");
    if (strlen(s->old_secret) < SECRET_MIN || strcmp(s->old_secret, s->file_secret) == 0)
        return err_set(e, ERR_INVALID,
                       "FILE_SECRET_OLD must be the FILE_SECRET that was used before, of at least "
                       "%d characters",
                       SECRET_MIN);
    if (parse_date(s->old_secret_date, &s->old_secret_until) < 0)
        return err_set(e, ERR_INVALID,
                       "FILE_SECRET_OLD_UNTIL must be a day such as 2026-12-31 or a moment such as "
                       "2026-12-31T18:00:00Z (UTC), not \"%.40s\"",
                       s->old_secret_date);
    return 0;
}

static int check_url(struct settings *s, struct err *e)
{
    char *url = s->public_base_url;
    if (strcmp(url, SANDBOX_LOCAL_URLS) == 0)
        return 0;
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return err_set(
            e, ERR_INVALID,
            "PUBLIC_BASE_URL must begin with http:// or https:// (or be " SANDBOX_LOCAL_URLS
            ", for sandcgi stdio)");
    if (strpbrk(url, " \t\"<>?#"))
        return err_set(e, ERR_INVALID,
                       "PUBLIC_BASE_URL contains a character that a URL prefix must not have");
    const char *host = strstr(url, "://") + 3;
    if (!*host || strchr(":/", *host))
        return err_set(e, ERR_INVALID,
                       "PUBLIC_BASE_URL has no host; set it to what clients reach, e.g. "
                       "https://sandbox.example.org");
    for (size_t len = strlen(url); len > 0 && url[len - 1] == '/'; len--)
        url[len - 1] = '\0';
    return 0;
}

static int check_tools(struct settings *s, struct err *e)
{
    s->toolset = toolset_find(s->tools);
    if (s->toolset < 0)
        return err_set(e, ERR_INVALID, "TOOLS=%s must be one of: %s", s->tools, TOOLSET_NAMES);
    if (s->tools_prefix[strspn(s->tools_prefix, PREFIX_CHARS)])
        return err_set(e, ERR_INVALID,
                       "TOOLS_PREFIX must consist of letters, digits, _ and -, e.g. sandbox_");
    return 0;
}

/* "uid:gid" into numbers; auto into 0. Root inside the containers is refused. */
static int check_sandbox_user(struct settings *s, struct err *e)
{
    AUTO_FREE char *text = mem_strdup(s->sandbox_user);
    char *colon = strchr(text, ':');
    uint64_t uid, gid;
    if (strcmp(text, "auto") == 0)
        return 0;
    if (colon)
        *colon = '\0';
    if (!colon || parse_u64(text, 1, INT_MAX, &uid) < 0 ||
        parse_u64(colon + 1, 1, INT_MAX, &gid) < 0)
        return err_set(e, ERR_INVALID,
                       "SANDBOX_USER must be auto, or UID:GID in numbers above 0, e.g. 1000:1000");
    s->sandbox_uid = (uid_t)uid;
    s->sandbox_gid = (gid_t)gid;
    return 0;
}

static int find_web_group(struct settings *s, struct err *e)
{
    const struct group *group = *s->listen_group ? getgrnam(s->listen_group) : NULL;

    if (*s->listen_group && !group)
        return err_set(e, ERR_INVALID, "SANDCGI_LISTEN_GROUP=%s: no such group", s->listen_group);
    s->web_gid = group ? group->gr_gid : 0;
    return 0;
}

static uint64_t automatic_memory(const struct settings *s)
{
    const uint64_t share = s->machine_bytes / AUTO_SHARE;
    const uint64_t most = s->toolset == TOOLSET_RUNNER ? RUNNER_MEMORY : AUTO_MEMORY;

    if (share >= most)
        return most;
    return share > AUTO_MEMORY_MIN ? share : AUTO_MEMORY_MIN;
}

static void set_automatic(struct settings *s)
{
    const bool few = sysconf(_SC_NPROCESSORS_ONLN) < 2 || s->toolset == TOOLSET_RUNNER;
    struct machine_memory memory = {0};

    machine_memory_look("", &memory);
    s->machine_bytes = memory.total;
    if (s->container.memory_bytes == 0)
        s->container.memory_bytes = automatic_memory(s);
    if (s->container.cpu_milli == 0)
        s->container.cpu_milli = few ? RUNNER_CPU_MILLI : AUTO_CPU_MILLI;
    if (s->container.tmp_bytes > s->container.memory_bytes) /* which it counts towards */
        s->container.tmp_bytes = s->container.memory_bytes;
    if (s->limits.wait_ms > s->limits.wait_max_ms)
        s->limits.wait_ms = s->limits.wait_max_ms;
    s->limits.run = (struct run_bounds){.memory = s->container.memory_bytes,
                                        .cpu_milli = s->container.cpu_milli,
                                        .tmp = s->container.tmp_bytes,
                                        .file = s->container.fsize_bytes,
                                        .pids = s->container.pids};
    if (strncmp(s->engine.host, "tcp:", 4) == 0) /* what that machine has is not known here */
        s->memory_reserve = 0;
    s->limits.timeout_automatic = s->limits.timeout_ms == 0;
    if (s->limits.timeout_automatic)
        s->limits.timeout_ms = s->limits.timeout_max_ms < AUTO_TIMEOUT_MS ? s->limits.timeout_max_ms
                                                                          : AUTO_TIMEOUT_MS;
}

/* Settings that contradict each other. */
static int check_combinations(const struct settings *s, struct err *e)
{
    const struct {
        bool wrong;
        const char *text;
    } rules[] = {
        {s->auth == SETTINGS_AUTH_TOKEN && !*s->api_token && !*s->tokens_file,
         "SANDCGI_AUTH=token needs MCP_API_TOKEN or SANDCGI_TOKENS_FILE"},
        {s->limits.timeout_ms > s->limits.timeout_max_ms,
         "SANDBOX_TIMEOUT is over SANDBOX_TIMEOUT_MAX"},
        {*s->engine.host && strncmp(s->engine.host, "unix:///", 8) != 0 &&
             strncmp(s->engine.host, "tcp://", 6) != 0,
         "DOCKER_HOST must be unix:///PATH or tcp://HOST:PORT, with the scheme, e.g. "
         "unix:///var/run/docker.sock"},
        {*s->metrics && !strchr(s->metrics, '/') && strncmp(s->metrics, "127.", 4) != 0 &&
             strncmp(s->metrics, "[::1]:", 6) != 0,
         "SANDCGI_METRICS must be a path or a loopback address, e.g. 127.0.0.1:9464: whoever "
         "reaches it can read it"},
        {s->sandbox_root[0] != '/', "SANDBOX_ROOT must be an absolute path"},
        {*s->node && !node_name_ok(s->node),
         "SANDCGI_NODE must consist of 1 to 16 of the characters a-z and 0-9, e.g. n1"},
        {*s->edge_secret && !*s->node, "SANDCGI_EDGE_SECRET is set without SANDCGI_NODE; set both"},
        {*s->sandbox_host_path && s->sandbox_host_path[0] != '/',
         "SANDBOX_HOST_PATH must be an absolute path"},
    };

    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (rules[i].wrong)
            return err_set(e, ERR_INVALID, "%s", rules[i].text);
    return 0;
}

static int check_address(const char *name, const char *address, struct err *e)
{
    return *address && sock_address_check(address, e) < 0 ? err_wrap(e, "%s=%s", name, address) : 0;
}

static int check_all(struct settings *s, struct err *e)
{
    if (check_secret("FILE_SECRET", s->file_secret, e) < 0 || check_old_secret(s, e) < 0 ||
        check_url(s, e) < 0 || check_tools(s, e) < 0 || check_sandbox_user(s, e) < 0 ||
        find_web_group(s, e) < 0 ||
        (*s->api_token && check_secret("MCP_API_TOKEN", s->api_token, e) < 0) ||
        (*s->edge_secret && check_secret("SANDCGI_EDGE_SECRET", s->edge_secret, e) < 0))
        return -1;
    set_automatic(s);
    if (check_address("SANDCGI_LISTEN", s->listen, e) < 0 ||
        check_address("SANDCGI_HUB", s->hub, e) < 0 ||
        check_address("SANDCGI_METRICS", s->metrics, e) < 0)
        return -1;
    return check_combinations(s, e) < 0 ? -1 : store_settings_check(&s->store, s->sandbox_root, e);
}

static int parse_total(struct settings *s, struct err *e)
{
    if (parse_share(s->total_max, 100, &s->bounds.total_bytes, &s->bounds.total_percent) == 0)
        return 0;
    return err_set(e, ERR_INVALID,
                   "SANDBOX_TOTAL_MAX must be a size like 100g, or a share of the file system from "
                   "0%% to 100%%, not \"%.40s\"",
                   s->total_max);
}

static int settings_derive(struct settings *s, struct err *e)
{
    const char *slash = strrchr(s->broker, '/');
    const int folder_len = slash ? (int)(slash + 1 - s->broker) : 0;
    uint8_t digest[CRYPTO_SHA256_LEN];

    s->control = control_path(s->broker);
    s->events = mem_printf("%.*sevents.sock", folder_len, s->broker);
    s->oauth_listen = mem_printf("%.*soauth.sock", folder_len, s->broker);
    if (check_address("SANDCGI_BROKER", s->broker, e) < 0 ||
        check_address("SANDCGI_BROKER", s->control, e) < 0) /* the longest beside it */
        return -1;
    if (!*s->sandbox_host_path) {
        free(s->sandbox_host_path);
        s->sandbox_host_path = mem_strdup(s->sandbox_root);
    }
    s->links_url = *s->node && strcmp(s->public_base_url, SANDBOX_LOCAL_URLS) != 0
                       ? mem_printf("%s/%s", s->public_base_url, s->node)
                       : mem_strdup(s->public_base_url);
    s->store.node = s->node;
    s->store.ca = s->ca;
    s->limits.env_max = ENV_MAX;
    s->limits.image_max = IMAGE_MAX;
    s->pool.idle_ms = (int64_t)s->warm_idle_ms;
    s->pool.reuse = s->reuse == SETTINGS_REUSE_CONVERSATION;
    /* Starts are fastest at about two at a time per CPU. */
    s->pool.starts_max = 2 * (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    s->index.private_ok = s->index_private;
    s->limits.network = (enum network_tier)s->network;
    s->bounds.ttl_s = (int64_t)(s->ttl_ms + 999) / 1000;
    const char *name = *s->instance ? s->instance : s->sandbox_host_path;
    if (parse_total(s, e) < 0 ||
        pool_settings_parse(s->warm, s->warm_memory, s->machine_bytes, &s->pool, e) < 0 ||
        index_settings_parse(s->indexes, &s->index, e) < 0 ||
        crypto_sha256(name, strlen(name), digest, e) < 0)
        return -1;
    crypto_hex(digest, sizeof s->instance_id / 2, s->instance_id);
    return 0;
}

static int check_oauth(struct settings *s, struct err *e)
{
    const struct oauth_context others = {.oauth = s->oauth,
                                         .public_base_url = s->public_base_url,
                                         .broker = s->broker,
                                         .tenants_file = s->tenants_file};

    return oauth_settings_check(&s->access, &others, e);
}

static int load_tenants(struct settings *s, struct err *e)
{
    tenants_init(&s->tenants);
    if (!*s->tenants_file)
        return 0;
    if (tenants_load(s->tenants_file, toolset_limit_ok, TOOLSET_NAMES, &s->tenants, e) == 0)
        return 0;
    return e->kind == ERR_INVALID ? -1 : err_wrap(e, "SANDBOX_TENANTS_FILE");
}

const char *settings_default_file(void)
{
    const char *named = getenv("SANDCGI_CONFIG");

    if (named)
        return named;
    if (getenv("SANDBOX_ROOT") || (access(SETTINGS_FILE, F_OK) < 0 && errno != EACCES))
        return NULL;
    return SETTINGS_FILE;
}

int settings_load(struct settings *out, const char *path, struct err *e)
{
    const struct conf_source from = {
        .table = settings_table, .others = settings_others, .path = path, .fixed_too = FIXED_TOO};
    AUTO_BUF struct buf notes = BUF_INIT(16 * 1024);

    *out = (struct settings){0};
    int result = conf_load(&from, out, &notes, e);
    out->notes = buf_take(&notes);
    if (result == 0 && check_all(out, e) == 0 && settings_derive(out, e) == 0 &&
        check_oauth(out, e) == 0 && load_tenants(out, e) == 0)
        return 0;
    settings_clear(out);
    return -1;
}

int settings_refuse_local(const struct settings *s, struct err *e)
{
    if (strcmp(s->public_base_url, SANDBOX_LOCAL_URLS) != 0)
        return 0;
    return err_set(e, ERR_INVALID,
                   "PUBLIC_BASE_URL=" SANDBOX_LOCAL_URLS
                   " is for sandcgi stdio; set it to the URL that clients reach the server at");
}

int settings_load_served(struct settings *out, const char *path, struct err *e)
{
    const char *unnamed = path || getenv("SANDBOX_ROOT") ? NULL : settings_default_file();

    *out = (struct settings){0};
    if (unnamed)
        return err_set(e, ERR_INVALID, "no settings are named; name them: --config %s", unnamed);
    if (settings_load(out, path, e) < 0)
        return -1;
    if (settings_refuse_local(out, e) == 0)
        return 0;
    settings_clear(out);
    return -1;
}

int settings_load_places(struct settings *out, const char *path, struct err *e)
{
    const struct conf_row table[] = {*conf_find(settings_table, "SANDCGI_BROKER"),
                                     *conf_find(settings_table, "SANDCGI_LOG"),
                                     *conf_find(settings_table, "SANDCGI_LOG_LEVEL"),
                                     *conf_find(settings_table, "SANDCGI_LOG_FORMAT"),
                                     *conf_find(settings_table, "SANDBOX_TIMEOUT_MAX"),
                                     {.name = NULL}};
    const struct conf_source from = {.table = table, .path = path, .lenient = true};
    AUTO_BUF struct buf notes = BUF_INIT(1024);

    *out = (struct settings){0};
    if (conf_load(&from, out, &notes, e) == 0) {
        out->control = control_path(out->broker);
        return 0;
    }
    settings_clear(out);
    return -1;
}

void settings_clear(struct settings *s)
{
    conf_clear(settings_table, s);
    tenants_clear(&s->tenants);
    free(TAKE_PTR(s->control));
    free(TAKE_PTR(s->links_url));
    free(TAKE_PTR(s->events));
    free(TAKE_PTR(s->oauth_listen));
    free(TAKE_PTR(s->access.check));
    free(TAKE_PTR(s->notes));
}
