/*
 * The settings: one table (settings.c), from which the loader, the help and the documentation are
 * made.
 */
#ifndef SANDCGI_FCGI_SETTINGS_H
#define SANDCGI_FCGI_SETTINGS_H

#include "common/base/conf.h"
#include "common/index/hosts.h"
#include "common/scheduler/pool_settings.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum settings_auth { SETTINGS_AUTH_NGINX, SETTINGS_AUTH_TOKEN };
enum settings_network { SETTINGS_NETWORK_NEVER, SETTINGS_NETWORK_ALLOWED, SETTINGS_NETWORK_ASK };

struct settings {
    /* read from the table */
    char *sandbox_root, *sandbox_host_path, *file_secret, *public_base_url;
    char *local_dirs;
    char *api_token, *tokens_file, *secret_file, *allowed_origins, *allowed_hosts;
    int auth;  /* enum settings_auth */
    int tools; /* of toolset_find */
    char *listen, *listen_group, *broker, *user;
    char *hub, *events;
    uint64_t max_streams, session_ttl_ms;
    unsigned listen_mode;
    uint64_t workers, max_body;
    int log_level; /* enum log_level */
    char *docker_host, *docker_cert_path;
    bool docker_tls_verify;
    char *instance, *images, *sandbox_user, *runtime;
    uint64_t cpu_milli, memory, pids, tmp_size, nofile, fsize;
    uint64_t timeout_ms, timeout_max_ms;
    uint64_t max_runs, tenant_runs, conversation_runs, queue, background_max;
    uint64_t wait_ms, wait_max_ms, result_ttl_ms;
    uint64_t ttl_ms, total_max, quota, files, disk_reserve;
    uint64_t persistent_max, persistent_server, persistent_idle_ms, persistent_pause_ms,
        persistent_total_ms;
    char *persistent_images;
    char *warm, *warm_memory;
    uint64_t warm_idle_ms;
    int network; /* enum settings_network */
    char *indexes, *index_ca;
    bool index_private;
    uint64_t code_max, stdin_max, file_max, env_max, output_keep, output_max;
    uint64_t image_max, images_max;
    uint64_t upload_max, upload_ttl_ms, url_ttl_ms;
    bool import;

    /* derived from them by settings_load */
    uid_t sandbox_uid;
    gid_t sandbox_gid;
    char instance_id[17];
    struct pool_settings pool;
    struct index_settings index;
};

extern const struct conf_row settings_table[];

/*
 * Defaults, then the file (NULL: none), then the environment; then the checks that concern several
 * settings or their meaning (secrets long enough and not the example's, URLs, user:group). On
 * failure *e is one line that says what to change.
 */
int settings_load(struct settings *out, const char *path, struct err *e);
void settings_clear(struct settings *s);

#endif
