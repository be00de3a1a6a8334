#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/protocol/wire.h"
#include "common/records/run_lock.h"
#include "common/sandbox/warm_dir.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

/* ---- ahead ---- */

static char *waiting_place(const struct supervisor *s)
{
    const struct supervisor_start *start = s->start;
    struct sandbox sandbox_dir = {.root = start->root};

    if (start->warm_dir)
        return warm_dir_host_path(start->root, start->warm_dir);
    memcpy(sandbox_dir.name, start->sandbox_dir, sizeof sandbox_dir.name);
    return sandbox_host_path(&sandbox_dir);
}

/* What is above its limit, a container has not measured in itself. */
static json_int_t memory_of(const struct supervisor *s, const struct engine_wait *now)
{
    const uint64_t limit = s->start->config->limits.container.memory_bytes;

    return now->memory_bytes > limit ? 0 : (json_int_t)now->memory_bytes;
}

/* Takes in what the waiting container said; false: it is of no more use. */
static bool look(struct supervisor *s, enum engine_tier *told)
{
    struct err e = ERR_INIT;
    struct engine_wait now = {0};

    if (s->engine->ops->look(s->engine, &now, &e) < 0) {
        log_info("a waiting container is gone: %s", e.text);
        return false;
    }
    if (now.tier != *told)
        supervisor_say(s, json_pack("{s:s, s:s, s:I}", "is", "waiting", "tier",
                                    now.tier == ENGINE_TIER_FULL ? "full" : "light", "memoryBytes",
                                    memory_of(s, &now)));
    *told = now.tier;
    return true;
}

/* Until a run comes, or nothing is to be waited for any more. */
static void wait_for_claim(struct supervisor *s)
{
    enum engine_tier told = ENGINE_TIER_NONE;
    struct pollfd p[2] = {{.fd = s->epoll_fd, .events = POLLIN},
                          {.fd = s->engine->ops->fd(s->engine), .events = POLLIN}};

    bool good = look(s, &told);
    while (good && !s->claimed && !s->stop) {
        if (poll(p, 2, -1) < 0)
            good = errno == EINTR;
        else if (p[0].revents)
            supervisor_tick(s);
        else
            good = look(s, &told);
    }
    s->started = good;
    if (good && s->claimed && told == ENGINE_TIER_NONE)
        supervisor_say_started(s); /* it never came to "waiting" */
    if (!good && !s->claimed)      /* a run that is on its way gets another container */
        supervisor_tick(s);
}

static void get_ahead(struct supervisor *s)
{
    struct err e = ERR_INIT;
    AUTO_FREE char *data_path = waiting_place(s);

    if (s->start->sandbox_dir)
        s->seat = supervisor_seat(s->start->root, s->start->sandbox_dir);
    if (supervisor_start_container(s, data_path, &e) == 0) {
        wait_for_claim(s);
        return;
    }
    if (e.kind != ERR_CANCELLED)
        log_warn("a container could not be started ahead: %s", e.text);
}

/* ---- the run ---- */

/* Cancelled before there was a program. */
static struct engine_outcome never_begun(void)
{
    int64_t now = clock_mono_us();

    return (struct engine_outcome){
        .end = ENGINE_CANCELLED, .exit_code = -1, .started_us = now, .ended_us = now};
}

/* The result, or NULL. */
static json_t *carry_out(struct supervisor *s, struct engine_outcome *out, struct err *e)
{
    AUTO_SNAPSHOT struct snapshot before = SNAPSHOT_INIT;
    AUTO_SNAPSHOT struct snapshot after = SNAPSHOT_INIT;
    const struct run_story story = {.run_id = s->start->run_id,
                                    .sandbox = &s->sandbox,
                                    .capture = &s->capture,
                                    .queue_ms = s->queue_ms};

    if (supervisor_place(s, e) < 0 || supervisor_look_before(s, &before, e) < 0)
        return NULL;
    if (supervisor_open_index(s, e) < 0)
        return NULL;
    bool ran = !s->cancelled && supervisor_run_program(s, out, e) == 0;
    if (!ran && !s->cancelled)
        return NULL;
    if (!ran)
        *out = never_begun();
    supervisor_close_index(s);
    if (snapshot_take(&s->sandbox, &after, e) < 0)
        return NULL;
    json_t *result = run_result_new(&story, out, &before, &after);
    supervisor_open_files(s, result);
    supervisor_add_retention(s, &after, result);
    supervisor_tell_index(s, result);
    return result;
}

/* What the operator should read about; the rest is the client's own doing. */
static bool is_ours_to_mend(enum err_kind kind)
{
    return kind == ERR_IO || kind == ERR_INTERNAL || kind == ERR_UNAVAILABLE ||
           kind == ERR_REFUSED || kind == ERR_LOST;
}

static void log_run(const struct supervisor *s, bool ran, const struct engine_outcome *out,
                    const struct err *e)
{
    const char *language = s->start->runner->language;

    if (ran)
        log_info("run %s language=%s status=%s exit=%d ms=%" PRId64 " queue_ms=%" PRId64
                 " ahead=%d",
                 s->start->run_id, language, run_status_name(run_result_status(out)),
                 out->exit_code, (out->ended_us - out->started_us) / 1000, s->queue_ms, out->ahead);
    else if (is_ours_to_mend(e->kind))
        log_warn("run %s language=%s: %s", s->start->run_id, language, e->text);
}

/* First whoever waits, then what can wait. */
static void serve_run(struct supervisor *s)
{
    struct err e = ERR_INIT;
    struct engine_outcome out;
    json_t *result = carry_out(s, &out, &e);
    bool ran = result != NULL;

    s->noted = false;
    supervisor_note_use(s); /* before the answer: who has it may ask for the tenant's files next */
    sandbox_close(&s->sandbox); /* and may delete them */
    supervisor_conclude(s, result, &e);
    if (ran)
        supervisor_note_size(s);
    supervisor_record_end(s);
    log_run(s, ran, &out, &e);
}

/* ---- a life ---- */

static int begin(struct supervisor *s, struct err *e)
{
    const struct supervisor_start *start = s->start;
    struct engine_address address = start->config->engine;

    address.version = start->version;
    s->lock_fd = runlock_take(start->root->fd, start->run_id, e);
    if (s->lock_fd < 0 || supervisor_open_events(s, e) < 0)
        return -1;
    s->live = output_ring_new(OUTPUT_RING_KEEP);
    s->engine = docker_engine_new(&address, e);
    return s->engine ? 0 : -1;
}

static void end(struct supervisor *s)
{
    supervisor_drain(s);
    if (s->claimed)
        supervisor_linger(s);
    if (s->engine)
        s->engine->ops->finish(s->engine);
    supervisor_close_channel(s);
    supervisor_drain(s);
    if (s->engine)
        s->engine->ops->free(s->engine);
    supervisor_close_index(s);
    supervisor_unclaim(s);
    output_ring_free(s->live);
    json_decref(s->reply);
    auto_close_fd(&s->channel);
    auto_close_fd(&s->timer_fd);
    auto_close_fd(&s->epoll_fd);
    if (s->lock_fd >= 0)
        runlock_remove(s->start->root->fd, s->start->run_id);
    auto_close_fd(&s->lock_fd);
}

static void refuse_claim(int connection, const struct err *e)
{
    json_auto_t *refusal = wire_error_new(e);

    if (connection >= 0)
        waiter_refuse(connection, refusal);
}

void supervisor_main(const struct supervisor_start *start)
{
    struct err e = ERR_INIT;
    struct supervisor s = {.start = start,
                           .lock_fd = -1,
                           .epoll_fd = -1,
                           .timer_fd = -1,
                           .channel = start->channel,
                           .alarm = DEADLINE_NEVER,
                           .tick = DEADLINE_NEVER,
                           .quiet = deadline_in_ms(0),
                           .redial = DEADLINE_NEVER,
                           .opened = FDS_INIT(FDS_MAX),
                           .sandbox = SANDBOX_INIT};

    if (begin(&s, &e) < 0) {
        log_error("a supervisor cannot begin: %s", e.text);
        refuse_claim(start->connection, &e);
    } else if (start->claim) {
        supervisor_claim(&s, start->claim, start->queue_ms, start->connection);
    } else {
        get_ahead(&s);
    }
    if (s.claimed)
        serve_run(&s);
    end(&s);
}
