/* The settings of the broker and its children: limits, paths, the engine's address. */
#pragma once

#include "common/base/tenants.h"
#include "common/engine/engine.h"
#include "common/index/index.h"
#include "common/protocol/limits.h"
#include "common/sandbox/sandbox.h"
#include "common/scheduler/pool_settings.h"
#include "common/store/store_settings.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A run whose result is kept has ended. Borrowed. */
struct broker_run_news {
    const char *tenant, *conversation, *run_id;
    const json_t *files; /* of its result; NULL: none */
};

/* What is done about limits that the engine does not hold (limits_probe.h). */
enum limits_check { LIMITS_TRUST, LIMITS_WARN, LIMITS_REFUSE };

/* Everything is borrowed and must live as long as the broker. */
struct broker_config {
    struct engine_address engine;
    struct engine_limits container;
    uint64_t memory_reserve; /* of the machine; 0: its memory is not looked at */
    struct broker_limits limits;
    struct sandbox_bounds bounds;  /* of what conversations keep */
    struct pool_settings pool;     /* warm containers */
    const struct tenants *tenants; /* limits of each; NULL: none */
    const struct index_settings *index;
    const char *index_ca;    /* file with further certificates that it is trusted by; "" none */
    const char *network_dns; /* of containers on NETWORK_PUBLIC; see engine_spec.dns */
    enum limits_check limits_check;
    const char *allow_images;
    const char *instance; /* whose containers these are */
    const char *runtime;
    const char *path; /* of the socket on which this broker listens, and the next one */
    const char *root_path, *host_path, *file_secret, *base_url;
    const char *old_secret;   /* FILE_SECRET before it was replaced; "" or NULL: it was not */
    int64_t old_secret_until; /* links made with it are valid up to then; Unix seconds */
    struct store_settings store;
    int64_t url_ttl_s; /* of files' URLs; 0: as long as the file is there */
    uid_t sandbox_uid; /* of programs and their files; 0: each sandbox has its own */
    gid_t sandbox_gid;
    gid_t web_gid;    /* of the web server, which serves files; 0: none */
    uid_t client_uid; /* besides our own: may connect */
    bool is_node;     /* one of several: it stands in for others */
    bool watch_site;  /* look at the certificate of base_url */
    /* Called in the broker's own process when other languages can be run than before, late enough
     * for workers to have forgotten what they remember of the list; must not block. False: could
     * not be announced; it is called again. NULL: not called. */
    bool (*runners_changed)(void *ctx);
    void *runners_changed_ctx;
    /* Called in the run's own process when the result can be had, if the caller may have left: it
     * is the only notice. Must not block for long. NULL: not called. */
    void (*run_ended)(void *ctx, const struct broker_run_news *news);
    void *run_ended_ctx;
};
