/* A persistent sandbox, from its start to its end. */
#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/log.h"
#include "common/protocol/wire.h"
#include "common/sandbox/state/trim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

json_t *psandbox_row_new(const struct supervisor *s)
{
    json_t *row = json_copy(s->record);

    psandbox_record_strip(row);
    return row;
}

void psandbox_begin(struct supervisor *s, struct err *e)
{
    if (psandbox_start(s, e) < 0) {
        container_log_failure(&s->base, "sandbox", s->base.start->container_id, e);
        psandbox_stop(s, "closed", "it could not be started");
        return;
    }
    json_t *row = psandbox_row_new(s);
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
    if (*s->ending)
        psandbox_stop(s, "closed", s->ending);
    else if (deadline_passed(idle))
        psandbox_stop(s, "expired", reason);
    else if (pauses && deadline_passed(at(s->used_ms + pause_ms)))
        psandbox_pause(s);
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
        psandbox_stop(s, "closed", PSANDBOX_SERVER_STOPPED);
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
        calls_answer(s, OP_CLOSE_PSANDBOX, wire_result_new(psandbox_row_new(s)));
    container_drain(&s->base);
    output_free(s->log);
    json_decref(s->record);
    for (size_t i = 0; i < PSANDBOX_SESSIONS; i++)
        buf_clear(&s->sessions[i].control);
}
