#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/protocol/run_id.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/unsaved.h"

#include <stdio.h>
#include <string.h>

#define GRACE_MS 60000 /* after its time: then the housekeeper removes the container */

void psandbox_stop(struct supervisor *s, const char *status, const char *reason)
{
    if (s->base.stop)
        return;
    s->base.stop = true;
    s->status = status;
    snprintf(s->reason, sizeof s->reason, "%s", reason);
}

/* ---- the record ---- */

static json_t *record_new(const struct supervisor *s)
{
    const struct supervisor_start *start = s->base.start;
    const char *kind = s->language ? "language" : "image";
    int64_t now = clock_unix_s();
    char id[PSANDBOX_ID_LEN + 1];

    psandbox_id_write(start->container_id, id);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "tenant",
                     s->use.tenant, "sandboxId", id, "status", "running", "conversationId",
                     s->use.conversation, kind, json_get_string(start->call.head, kind), "network",
                     wire_network(start->call.head) != NETWORK_NONE, "session", s->keeps_variables,
                     "begunUs", (json_int_t)clock_unix_us(), "createdAt", (json_int_t)now,
                     "lastUsedAt", (json_int_t)now, "idleTimeoutMs", (json_int_t)s->idle_ms,
                     "expiresAt", (json_int_t)(now + s->total_ms / 1000), "keepSeconds",
                     (json_int_t)start->config->limits.result_ttl_ms / 1000);
}

void psandbox_write_record(struct supervisor *s)
{
    const struct supervisor_start *start = s->base.start;
    const char *status = s->base.stop ? s->status : s->paused ? "paused" : "running";
    int64_t since_s = (clock_mono_ms() - s->used_ms) / 1000;
    struct err e = ERR_INIT;

    json_object_set_new(s->record, "status", json_string(status));
    json_object_set_new(s->record, "lastUsedAt", json_integer(clock_unix_s() - since_s));
    if (s->base.stop) {
        json_object_set_new(s->record, "endedAt", json_integer(clock_unix_s()));
        json_object_set_new(s->record, "reason", json_from_bytes(s->reason, strlen(s->reason)));
    }
    if (psandbox_record_write(start->root, start->container_id, s->record, &e) < 0)
        log_warn("sandbox %s: %s", start->container_id, e.text);
}

/* ---- the container ---- */

int psandbox_start(struct supervisor *s, struct err *e)
{
    const struct supervisor_start *start = s->base.start;
    AUTO_SNAPSHOT struct snapshot before = {0};

    if (sandbox_open_named(start->root, start->call.sandbox_dir, s->use.tenant, &s->sandbox, e) <
            0 ||
        retention_notice_before(&s->sandbox, &before, e) < 0)
        return -1;
    unsaved_note(start->root, s->sandbox.name); /* the saver looks again as long as it is used */
    AUTO_FREE char *data_path = sandbox_host_path(&s->sandbox);
    struct engine_spec spec = {
        .image = json_get_string(start->call.head, "image"),
        .psandbox = true,
        .alias = json_get_string(start->call.head, "alias"),
        .data_path = data_path,
        .deadline_unix = clock_unix_s() + (s->total_ms + CONTAINER_START_MS + GRACE_MS) / 1000,
        .network = wire_network(start->call.head),
    };
    if (container_start(&s->base, s->sandbox.owner, &spec, e) < 0)
        return -1;
    s->began_ms = s->used_ms = clock_mono_ms();
    disk_watch_begin(&s->base.disk, &s->base.channel.loop, &s->sandbox, &before);
    s->record = record_new(s);
    psandbox_write_record(s);
    s->base.unread = true;
    log_info("sandbox %s runs: %s", start->container_id, s->language ? s->language : "an image");
    return 0;
}

static int lose(struct supervisor *s, struct err *e)
{
    psandbox_stop(s, "lost", e->text);
    return err_set(e, ERR_LOST, "the sandbox is lost (%s)", s->reason);
}

void psandbox_pause(struct supervisor *s)
{
    struct err e = ERR_INIT;

    if (s->base.engine->ops->pause(s->base.engine, true, &e) < 0) {
        log_warn("cannot pause sandbox %s: %s", s->base.start->container_id, e.text);
        s->cannot_pause = true;
        s->base.unread = true; /* its end is noticed now, if that is why */
        return;
    }
    s->paused = true;
    psandbox_write_record(s);
}

int psandbox_unpause(struct supervisor *s, struct err *e)
{
    if (!s->paused)
        return 0;
    if (s->base.engine->ops->pause(s->base.engine, false, e) < 0)
        return lose(s, e);
    s->paused = false;
    s->used_ms = clock_mono_ms();
    psandbox_write_record(s);
    return 0;
}

int psandbox_send(struct supervisor *s, const struct engine_command *command, uint32_t *out_id,
                  struct err *e)
{
    if (psandbox_unpause(s, e) < 0)
        return -1;
    s->base.unread = true;
    if (s->base.engine->ops->exec(s->base.engine, command, out_id, e) == 0)
        return 0;
    return e->kind == ERR_LOST ? lose(s, e) : -1;
}

void psandbox_kill_command(struct supervisor *s, uint32_t id)
{
    struct err e = ERR_INIT;

    s->base.unread = true;
    if (s->base.engine->ops->kill(s->base.engine, id, &e) < 0)
        log_debug("sandbox %s: %s", s->base.start->container_id,
                  e.text); /* its end is noticed anyway */
}
