/* The settings: one table, from which the loader, the help and the documentation are made. */
#pragma once

#include "common/base/conf.h"
#include "common/scheduler/broker_config.h"
#include "fcgi/oauth/oauth_settings.h"

enum settings_auth { SETTINGS_AUTH_NGINX, SETTINGS_AUTH_TOKEN };
enum settings_answers { SETTINGS_ANSWERS_TEXT, SETTINGS_ANSWERS_STRUCTURED };
enum settings_standin { SETTINGS_STANDIN_SERVE, SETTINGS_STANDIN_REFUSE };
enum settings_reuse { SETTINGS_REUSE_CONVERSATION, SETTINGS_REUSE_NEVER };

/* What is written for nginx (start.sh, sandcgi setup). */
struct nginx_settings {
    char *bind, *tls_cert, *tls_key, *real_ip_from, *real_ip_header, *page, *profiles;
    uint64_t https_port, http_port, rate;
};

struct settings {
    /* read from the table */
    char *sandbox_root, *sandbox_host_path, *file_secret, *public_base_url;
    char *old_secret, *old_secret_date;
    char *local_dirs;
    char *api_token, *tokens_file, *tokens_reload, *secret_file, *allowed_origins, *allowed_hosts;
    char *oauth;
    struct oauth_settings access; /* what belongs to it, read and derived */
    int auth;                     /* enum settings_auth */
    int answers;                  /* enum settings_answers */
    char *tools, *tools_prefix;
    char *node, *edge_secret;
    int standin; /* enum settings_standin */
    bool route_headers;
    char *listen, *listen_group, *broker, *user, *hub;
    bool takeover;
    uint64_t workers, max_calls, max_body, max_streams, max_sessions;
    int log_level;  /* enum log_level */
    int log_format; /* enum log_format */
    char *log_file;
    char *metrics;
    int limits_check; /* enum limits_check */
    char *tenants_file;
    char *instance, *images, *sandbox_user, *runtime;
    uint64_t ttl_ms, url_ttl_ms;
    struct store_settings store;
    char *warm, *warm_memory, *total_max;
    uint64_t warm_idle_ms;
    int network; /* enum network_tier */
    int reuse;   /* enum settings_reuse */
    char *network_dns;
    char *indexes, *ca;
    bool index_private;
    /* those of the broker; limits.network and bounds.ttl_s are derived */
    struct engine_address engine;
    struct engine_limits container;
    uint64_t memory_reserve;
    struct broker_limits limits;
    struct sandbox_bounds bounds;
    struct nginx_settings nginx;

    /* derived from them by settings_load */
    uint64_t machine_bytes; /* its memory */
    uid_t sandbox_uid;
    gid_t sandbox_gid;
    gid_t web_gid;            /* of SANDCGI_LISTEN_GROUP; 0: none */
    int64_t old_secret_until; /* Unix seconds; 0: there is no old secret */
    char instance_id[17];
    char *control;      /* socket of orders to the guard, beside the broker's */
    char *events;       /* events.sock beside SANDCGI_BROKER: what the hub is told by */
    char *oauth_listen; /* oauth.sock there: the authorization server's socket */
    char *links_url;    /* public_base_url, with the node behind it: what links begin with */
    int toolset;        /* of tools, by toolset_find */
    char *notes;        /* lines: names that are not settings, and what became of them */
    struct pool_settings pool;
    struct index_settings index;
    struct tenants tenants; /* of SANDBOX_TENANTS_FILE; no limits without it */
};

extern const struct conf_row settings_table[];
extern const struct conf_group settings_groups[];
extern const struct conf_other settings_others[];

#define SETTINGS_FILE "/etc/sandcgi/sandcgi.conf"

/* The file for an administrator's command without --config: SANDCGI_CONFIG, or SETTINGS_FILE if it
 * is there. NULL: neither, or the environment holds the settings (SANDBOX_ROOT). */
const char *settings_default_file(void);

/*
 * Defaults, then the file (NULL: none), then the environment; then the checks that concern several
 * settings or their meaning (secrets long enough and not the example's, URLs, user:group). On
 * failure *e is one line that says what to change.
 */
int settings_load(struct settings *out, const char *path, struct err *e);
/* ERR_INVALID: PUBLIC_BASE_URL is for stdio alone. */
int settings_refuse_local(const struct settings *s, struct err *e);
/* For a server. ERR_INVALID also without path and environment, where an administrator's command
 * finds a file; and as above. */
int settings_load_served(struct settings *out, const char *path, struct err *e);
/* Where a running server and its log are found, whatever is wrong with the other settings: broker,
 * control, limits.timeout_max_ms and those of the log alone. */
int settings_load_places(struct settings *out, const char *path, struct err *e);
void settings_clear(struct settings *s);
