#include "config.h"

#include "common/scheduler/run_queue.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/base/metrics.h"

#include <stdio.h>
#include <string.h>

struct run_queue {
    struct run_queue_settings settings;
    struct admission *admission;
    struct queued_run *first; /* in order of arrival */
    size_t n_placed;          /* in RUN_PLACED */
    uint64_t round;           /* of starts: each tenant has one in each */
    struct run_tally tally;
};

/* What runs in the tenant's persistent sandboxes takes no place. */
static size_t programs_elsewhere(const void *queue, const char *tenant)
{
    return children_count_calls(((const struct run_queue *)queue)->settings.children, tenant);
}

static bool is_busy_sandbox(const struct child *child, const void *unused)
{
    (void)unused;
    return child->kind == CHILD_PSANDBOX &&
           (child->n_handed > 0 || json_array_size(child->calls) > 0);
}

static bool is_older(const struct child *child, const void *since_ms)
{
    return child->placed && child->state == CHILD_RUNNING &&
           child->since_ms <= *(const int64_t *)since_ms;
}

/* A run that has a place and no program yet is young, too. */
static bool has_memory(const void *queue)
{
    const struct run_queue *q = queue;
    const struct children *children = q->settings.children;
    const int64_t since_ms = q->settings.memory.latest.at_ms - MEMORY_YOUNG_MS;
    const size_t running = admission_running(q->admission);
    const size_t older = children_count(children, is_older, &since_ms);

    return memory_room_fits(
        &q->settings.memory,
        (struct memory_programs){.running = running +
                                            children_count(children, is_busy_sandbox, NULL),
                                 .young = running - older});
}

/* Whether the figures are new. */
static bool look_at_memory(struct run_queue *q, int64_t now_ms)
{
    struct run_queue_settings *s = &q->settings;
    uint64_t available;

    if (!memory_room_is_stale(&s->memory, now_ms))
        return false;
    if (s->memory_available(s->ctx, &available))
        memory_room_look(&s->memory, available, now_ms);
    else
        s->memory.reserve = 0;
    return true;
}

struct run_queue *run_queue_new(const struct run_queue_settings *settings)
{
    struct run_queue *q = mem_alloc(sizeof *q);

    q->settings = *settings;
    q->settings.limits.elsewhere = programs_elsewhere;
    q->settings.limits.has_memory = settings->memory.reserve > 0 ? has_memory : NULL;
    q->settings.limits.ctx = q;
    q->admission = admission_new(&q->settings.limits);
    return q;
}

void run_queue_free(struct run_queue *q)
{
    if (q)
        admission_free(q->admission);
    free(q);
}

size_t run_queue_length(const struct run_queue *q)
{
    return admission_waiting(q->admission) + q->n_placed;
}

size_t run_queue_running(const struct run_queue *q)
{
    return admission_running(q->admission);
}

int64_t run_queue_retry_ms(const struct run_queue *q)
{
    return admission_retry_ms(q->admission);
}

struct run_tally run_queue_tally(const struct run_queue *q)
{
    return q->tally;
}

bool run_queue_is_empty(const struct run_queue *q)
{
    return !q->first;
}

bool run_queue_uses_sandbox(const struct run_queue *q, const char *sandbox_dir)
{
    const struct queued_run *run = q->first;

    while (run && strcmp(run->sandbox_dir, sandbox_dir) != 0)
        run = run->next;
    return run != NULL;
}

struct queued_run *run_queue_unassigned(const struct run_queue *q)
{
    struct queued_run *run = q->first;

    while (run && run->stage == RUN_ASSIGNED)
        run = run->next;
    return run;
}

struct deadline run_queue_due(const struct run_queue *q)
{
    struct deadline due = DEADLINE_NEVER;

    for (const struct queued_run *run = q->first; run; run = run->next)
        if (run->stage != RUN_ASSIGNED)
            due = deadline_min(due, run->end);
    if (q->settings.memory.reserve > 0 && admission_waiting(q->admission) > 0)
        due = deadline_min(due,
                           (struct deadline){q->settings.memory.latest.at_ms + MEMORY_LOOK_MS});
    return due;
}

/* ---- stages ---- */

static void run_set_stage(struct run_queue *q, struct queued_run *run, enum run_stage stage)
{
    q->n_placed -= run->stage == RUN_PLACED;
    q->n_placed += stage == RUN_PLACED;
    run->stage = stage;
}

/* The run has a place; its start comes a round after the latest of its tenant's. */
static void run_place(struct run_queue *q, struct queued_run *run)
{
    run->round = q->round;
    for (const struct queued_run *o = q->first; o; o = o->next)
        if (o->stage == RUN_PLACED && o->round >= run->round && strcmp(o->tenant, run->tenant) == 0)
            run->round = o->round + 1;
    run_set_stage(q, run, RUN_PLACED);
}

static void run_unlink(struct run_queue *q, struct queued_run *run)
{
    struct queued_run **at = &q->first;

    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    run_set_stage(q, run, RUN_OUTSIDE);
}

void run_queue_place(struct run_queue *q)
{
    for (struct queued_run *next; (next = admission_next(q->admission));)
        run_place(q, next);
}

static void place_release(struct run_queue *q, const char *tenant, const char *sandbox_dir,
                          bool background, int64_t now_ms)
{
    admission_release(q->admission, tenant, sandbox_dir, background, now_ms);
    look_at_memory(q, now_ms);
    run_queue_place(q);
}

void run_queue_drop(struct run_queue *q, struct queued_run *run, int64_t now_ms)
{
    if (run->stage == RUN_WAITING)
        admission_forget(q->admission, run);
    else
        place_release(q, run->tenant, run->sandbox_dir, run->background, now_ms);
    run_unlink(q, run);
}

bool run_queue_leave(struct run_queue *q, struct queued_run *run, int64_t now_ms)
{
    if (!run->detach)
        run_queue_drop(q, run, now_ms);
    return !run->detach;
}

/* ---- arrival ---- */

int run_queue_check_most(const struct run_queue *q, const char *tenant, size_t most, struct err *e)
{
    size_t n = most > 0 ? admission_running_of(q->admission, tenant) : 0;

    if (most == 0 || n < most)
        return 0;
    return err_set(
        e, ERR_BUSY,
        "concurrent_runs: %zu programs of yours are running; the limit is %zu, until one "
        "has ended: wait for it, or cancel it",
        n, most);
}

static void refuse_as_busy(const struct run_queue *q, struct queued_run *run, size_t position,
                           int64_t retry_ms, struct run_action *out)
{
    *out = (struct run_action){
        .what = RUN_REFUSE, .run = run, .position = position, .retry_ms = retry_ms};
    if (run_queue_check_most(q, run->tenant, run->most, &out->why) < 0)
        return;
    err_set(&out->why, ERR_BUSY,
            "%zu programs are running and %zu wait: there is no room for more; try again in %g s",
            run_queue_running(q), run_queue_length(q), (double)retry_ms / 1000.0);
}

int run_queue_check_background(const struct run_queue *q, const char *tenant, struct err *e)
{
    const size_t max = q->settings.background_max;
    size_t n = admission_background(q->admission, tenant) +
               children_count_background_calls(q->settings.children, tenant);

    if (max == 0)
        return err_set(e, ERR_DENIED,
                       "background, and waitMs 0: this server runs nothing in the background "
                       "(SANDBOX_BACKGROUND_MAX is 0)");
    if (n >= max)
        return err_set(e, ERR_BUSY,
                       "background: %zu runs of yours go on in the background, which is the most "
                       "(SANDBOX_BACKGROUND_MAX); wait for the end of one, or cancel it",
                       n);
    return 0;
}

bool run_queue_add(struct run_queue *q, struct queued_run *run, int64_t now_ms,
                   struct run_action *out)
{
    const struct admission_want want = {.tenant = run->tenant,
                                        .sandbox_dir = run->sandbox_dir,
                                        .background = run->background,
                                        .most = run->most,
                                        .now_ms = now_ms,
                                        .ticket = run};
    struct queued_run **at = &q->first;
    uint64_t wait_ms = run->background && run->wait_ms == 0 ? q->settings.background_wait_ms
                                                            : run->wait_ms;
    size_t position;
    int64_t retry_ms;

    *out = (struct run_action){.what = RUN_REFUSE, .run = run};
    if (run->background && run_queue_check_background(q, run->tenant, &out->why) < 0)
        return true;
    run->asked_ms = now_ms;
    run->end = DEADLINE_NEVER;
    if (wait_ms > 0)
        run->end.at_ms = now_ms + (wait_ms > INT32_MAX ? INT32_MAX : (int64_t)wait_ms);
    run->next = NULL;
    run->passed_by = false;
    run->tries = 0;
    run->stage = RUN_WAITING;
    look_at_memory(q, now_ms);
    enum admission_answer answer = admission_ask(q->admission, &want, &position, &retry_ms);
    if (answer == ADMISSION_BUSY) {
        run->stage = RUN_OUTSIDE;
        refuse_as_busy(q, run, position, retry_ms, out);
        return true;
    }
    while (*at)
        at = &(*at)->next;
    *at = run;
    if (answer == ADMISSION_GO)
        run_place(q, run);
    *out = (struct run_action){.what = RUN_TELL_POSITION, .run = run, .position = position};
    return answer == ADMISSION_WAIT;
}

/* ---- starts ---- */

static bool is_start_of(const struct child *child, const void *tenant)
{
    return child->state == CHILD_STARTING && child->claimed && strcmp(child->tenant, tenant) == 0;
}

static bool may_spawn(const struct run_queue *q, const struct queued_run *run, int64_t now_ms)
{
    const struct run_queue_settings *s = &q->settings;
    size_t share = s->starts_max / 2 ? s->starts_max / 2 : 1;

    return pool_may_start(s->pool, s->children) &&
           (!admission_contended(q->admission, run->tenant, now_ms) ||
            children_count(s->children, is_start_of, run->tenant) < share);
}

/* What to do for a run that has a place; false: nothing can be started for it now. */
static bool run_next(struct run_queue *q, struct queued_run *run, int64_t now_ms,
                     struct run_action *out)
{
    const struct run_queue_settings *s = &q->settings;

    *out = (struct run_action){.what = RUN_REFUSE, .run = run};
    const struct engine_runner *runner = runners_find(s->runners, run->language, &out->why);
    if (!runner) { /* the engine or the image has gone meanwhile */
        run_queue_drop(q, run, now_ms);
        return true;
    }
    out->want = (struct pool_want){.runner = runner,
                                   .sandbox_dir = run->sandbox_dir,
                                   .known = s->sandbox_exists(s->ctx, run->sandbox_dir),
                                   .network = run->network,
                                   .single_use = run->single_use,
                                   .imports = run->imports};
    out->child = pool_choose(s->pool, s->children, &out->want);
    out->what = out->child ? RUN_ASSIGN : RUN_SPAWN;
    return out->child || may_spawn(q, run, now_ms);
}

static struct queued_run *find_placed(const struct run_queue *q)
{
    struct queued_run *found = NULL;

    for (struct queued_run *run = q->first; run; run = run->next)
        if (run->stage == RUN_PLACED && !run->passed_by && (!found || run->round < found->round))
            found = run;
    return found;
}

bool run_queue_next(struct run_queue *q, int64_t now_ms, struct run_action *out)
{
    struct queued_run *run;

    if (admission_waiting(q->admission) > 0 && look_at_memory(q, now_ms))
        run_queue_place(q);
    for (; q->n_placed > 0 && (run = find_placed(q)); run->passed_by = true)
        if (run_next(q, run, now_ms, out))
            return true;
    run = q->first;
    while (run && (run->stage == RUN_ASSIGNED || run->end.at_ms < 0 || run->end.at_ms > now_ms))
        run = run->next;
    if (run) { /* its time is over, and it cannot start now */
        run_queue_drop(q, run, now_ms);
        refuse_as_busy(q, run, admission_waiting(q->admission), admission_retry_ms(q->admission),
                       out);
        return true;
    }
    /* The turn is over. Behind a fork, a write has its page copied. */
    for (run = q->first; run; run = run->next)
        if (run->passed_by)
            run->passed_by = false;
    return false;
}

void run_queue_assigned(struct run_queue *q, const struct run_action *action, struct child *child,
                        int64_t now_ms)
{
    struct queued_run *run = action->run;
    bool warm = action->what == RUN_ASSIGN && child->state != CHILD_STARTING;

    pool_note_claim(q->settings.pool, &action->want, now_ms);
    q->tally.warm += warm;
    q->tally.cold += !warm;
    q->tally.reused += child->runs > 0;
    metrics_add(METRIC_CONTAINERS,
                !warm             ? "kind=\"cold\""
                : child->runs > 0 ? "kind=\"used\""
                                  : "kind=\"warm\"",
                1);
    child->claimed = true;
    child->placed = true;
    child->run = run;
    child->background = run->background;
    child->network = run->network;
    child->single_use = run->single_use;
    memcpy(child->sandbox_dir, run->sandbox_dir, sizeof child->sandbox_dir);
    snprintf(child->language, sizeof child->language, "%s", run->language);
    child_set_owner(child, run->tenant, run->conversation);
    run_set_stage(q, run, RUN_ASSIGNED);
    if (run->round > q->round)
        q->round = run->round;
    run->tries++;
}

/* ---- what becomes of a supervisor ---- */

struct queued_run *run_queue_taken(struct run_queue *q, struct child *child)
{
    struct queued_run *run = TAKE_PTR(child->run);

    if (run)
        run_unlink(q, run);
    return run;
}

void run_queue_release(struct run_queue *q, struct child *child, int64_t now_ms)
{
    if (child->placed)
        place_release(q, child->tenant, child->sandbox_dir, child->background, now_ms);
    child->placed = false;
}

struct queued_run *run_queue_child_lost(struct run_queue *q, struct child *child, bool body_unread,
                                        int64_t now_ms)
{
    if (child->run && body_unread && child->run->tries < RUN_TRIES_MAX) {
        run_place(q, TAKE_PTR(child->run));
        child->placed = false; /* the run's still */
        return NULL;
    }
    struct queued_run *run = run_queue_taken(q, child);
    run_queue_release(q, child, now_ms);
    return run;
}

void run_queue_adopt(struct run_queue *q, struct child *child)
{
    child->placed = true;
    admission_adopt(q->admission, child->tenant, child->sandbox_dir, child->background);
}
