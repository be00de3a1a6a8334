#include "config.h"

#include "fcgi/process/broker_config.h"

#include "fcgi/hub/events.h"
#include "fcgi/hub/run_events.h"

/* Seldom enough to open a socket for. */
static void tell_tools_changed(void *ctx)
{
    const struct settings *s = ctx;
    const struct mcp_event event = {.kind = MCP_EVENT_TOOLS};
    struct event_sender sender;

    event_sender_init(&sender, s->events);
    event_sender_publish(&sender, &event);
    event_sender_clear(&sender);
}

struct broker_config broker_config_of(const struct settings *s, uid_t client_uid)
{
    return (struct broker_config){
        .engine = {.host = s->docker_host,
                   .tls_verify = s->docker_tls_verify,
                   .cert_path = s->docker_cert_path},
        .limits = {.container = {.cpu_milli = s->cpu_milli,
                                 .memory_bytes = s->memory,
                                 .pids = s->pids,
                                 .tmp_bytes = s->tmp_size,
                                 .nofile = s->nofile,
                                 .fsize_bytes = s->fsize},
                   .timeout_ms = s->timeout_ms,
                   .timeout_max_ms = s->timeout_max_ms,
                   .code_max = s->code_max,
                   .stdin_max = s->stdin_max,
                   .file_max = s->file_max,
                   .upload_max = s->upload_max,
                   .upload_ttl_s = (int64_t)(s->upload_ttl_ms / 1000),
                   .env_max = s->env_max,
                   .output_keep = s->output_keep,
                   .output_max = s->output_max,
                   .max_runs = s->max_runs,
                   .tenant_runs = s->tenant_runs ? s->tenant_runs : s->max_runs,
                   .conversation_runs = s->conversation_runs,
                   .queue = s->queue,
                   .background_max = s->background_max,
                   .wait_ms = s->wait_ms,
                   .wait_max_ms = s->wait_max_ms,
                   .result_ttl_ms = s->result_ttl_ms,
                   .network = s->network != SETTINGS_NETWORK_NEVER,
                   .import = s->import},
        .bounds = {.ttl_s = (int64_t)(s->ttl_ms + 999) / 1000,
                   .total_bytes = s->total_max,
                   .bytes = s->quota,
                   .files = s->files,
                   .reserve = s->disk_reserve},
        .pool = s->pool,
        .persistent = {.tenant_max = s->persistent_max,
                       .server_max = s->persistent_server,
                       .idle_ms = s->persistent_idle_ms,
                       .pause_ms = s->persistent_pause_ms,
                       .total_ms = s->persistent_total_ms,
                       .images = s->persistent_images},
        .index = &s->index,
        .index_ca = s->index_ca,
        .allow_images = s->images,
        .instance = s->instance_id,
        .runtime = s->runtime,
        .root_path = s->sandbox_root,
        .host_path = s->sandbox_host_path,
        .file_secret = s->file_secret,
        .base_url = s->public_base_url,
        .url_ttl_s = (int64_t)((s->url_ttl_ms + 999) / 1000),
        .sandbox_uid = s->sandbox_uid,
        .sandbox_gid = s->sandbox_gid,
        .client_uid = client_uid,
        .runners_changed = tell_tools_changed,
        .runners_changed_ctx = (void *)(uintptr_t)s,
        .run_ended = run_events_send,
        .run_ended_ctx = (void *)(uintptr_t)s,
    };
}
