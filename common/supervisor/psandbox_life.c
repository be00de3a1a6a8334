/* A persistent sandbox, from its start to its end: its container and its record. */
#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/protocol/run_id.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/trim.h"
#include "common/sandbox/state/unsaved.h"

#include <inttypes.h>
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

/* Opens the sandbox directory, starts the container and makes the record. */
static int start(struct supervisor *s, struct err *e)
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
        .helpers_path = start->helpers_path,
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

static void pause_container(struct supervisor *s)
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

/* ---- its start ---- */

/* For its owner. */
static json_t *row_new(const struct supervisor *s)
{
    json_t *row = json_copy(s->record);

    psandbox_record_strip(row);
    return row;
}

void psandbox_begin(struct supervisor *s, struct err *e)
{
    if (start(s, e) < 0) {
        container_log_failure(&s->base, "sandbox", s->base.start->container_id, e);
        psandbox_stop(s, "closed", "it could not be started");
        return;
    }
    if (s->keeps_variables)
        psandbox_session_look_back(s);
    json_t *row = row_new(s);
    json_object_del(row, "lastUsedAt");
    json_object_del(row, "session");
    calls_answer(s, OP_CREATE_PSANDBOX, wire_result_new(row));
}

/* ---- what is due ---- */

static struct deadline at(int64_t mono_ms)
{
    return (struct deadline){.at_ms = mono_ms};
}

/* When nothing runs: pauses it, or ends it. */
static struct deadline tend_idle(struct supervisor *s)
{
    const int64_t pause_ms = (int64_t)s->base.start->config->limits.persistent.pause_ms;
    bool pauses = pause_ms > 0 && !s->paused && !s->cannot_pause;
    struct deadline idle = at(s->used_ms + s->idle_ms);
    char reason[80];

    if (calls_busy(s) > 0)
        return DEADLINE_NEVER;
    snprintf(reason, sizeof reason, "it was unused for %" PRId64 " seconds", s->idle_ms / 1000);
    if (s->ending)
        psandbox_stop(s, "closed", "the server was stopped");
    else if (deadline_passed(idle))
        psandbox_stop(s, "expired", reason);
    else if (pauses && deadline_passed(at(s->used_ms + pause_ms)))
        pause_container(s);
    else if (pauses)
        return deadline_min(idle, at(s->used_ms + pause_ms));
    return idle;
}

struct deadline psandbox_tend(struct supervisor *s)
{
    struct deadline total = at(s->began_ms + s->total_ms);
    struct deadline orphan = s->base.channel.fd < 0 ? s->orphan : DEADLINE_NEVER;
    char reason[80];

    if (deadline_passed(total)) {
        snprintf(reason, sizeof reason, "its time of %" PRId64 " seconds was over",
                 s->total_ms / 1000);
        psandbox_stop(s, "expired", reason);
    }
    if (deadline_passed(orphan))
        psandbox_stop(s, "closed", "the server was stopped");
    return deadline_min(deadline_min(total, orphan), tend_idle(s));
}

/* ---- its end ---- */

/* Answers the calls that its end cuts off. */
static void answer_rest(struct supervisor *s, const struct err *problem)
{
    struct err e = *problem;

    if (s->record && strcmp(s->status, "lost") == 0)
        err_set(&e, ERR_LOST, "the sandbox is lost (%s), and what ran in it", s->reason);
    else if (s->record)
        psandbox_record_say_end(s->record, &e);
    for (size_t i = s->n_calls; i > 0; i--)
        if (s->calls[i - 1]->row->op != OP_CLOSE_PSANDBOX || !s->record)
            call_refuse(s, s->calls[i - 1], &e);
}

static void write_end(struct supervisor *s)
{
    const struct supervisor_start *start = s->base.start;
    struct err e = ERR_INIT;

    psandbox_write_record(s);
    if (psandbox_record_write_log(start->root, start->container_id, s->log, &e) < 0)
        log_warn("sandbox %s: %s", start->container_id, e.text);
    log_info("sandbox %s is %s: %s", start->container_id, s->status, s->reason);
}

/* After its end, if the disk was why. */
static void trim(struct supervisor *s)
{
    AUTO_SNAPSHOT struct snapshot after = {0};
    const struct disk_watch *w = &s->base.disk;
    struct err e = ERR_INIT, over = ERR_INIT;

    if (w->over.kind == ERR_NONE)
        return;
    if (trim_after(&s->sandbox, &w->then, false, &after, &over, &e) < 0)
        log_warn("sandbox %s: %s", s->base.start->container_id, e.text);
    else if (over.kind != ERR_NONE)
        log_info("sandbox %s: its files were too much and are removed",
                 s->base.start->container_id);
}

void psandbox_end(struct supervisor *s, const struct err *problem)
{
    if (s->record)
        write_end(s);
    channel_send(&s->base.channel, json_pack("{s:s}", "is", "ended"));
    answer_rest(s, problem);
    container_finish(&s->base);
    trim(s);
    disk_watch_end(&s->base.disk);
    sandbox_close(&s->sandbox); /* before the answer: its caller may delete the conversation next */
    channel_close(&s->base.channel); /* takes the calls that came meanwhile */
    answer_rest(s, problem);
    if (s->record)
        calls_answer(s, OP_CLOSE_PSANDBOX, wire_result_new(row_new(s)));
    container_drain(&s->base);
    output_free(s->log);
    json_decref(s->record);
    buf_clear(&s->session.control);
}
