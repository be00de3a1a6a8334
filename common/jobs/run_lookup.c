#include "config.h"

#include "common/jobs/run_lookup.h"

#include "common/base/clock.h"
#include "common/records/run_lock.h"
#include "common/records/run_record.h"
#include "common/records/run_result.h"
#include "common/rpc/json.h"

#include <string.h>
#include <time.h>

#define LAST_MS 1000 /* for a supervisor to write down what it has answered already */
#define LOOK_MS 10

/* ---- one run ---- */

/* It is looked after by somebody whom the books do not know (yet). */
static json_t *unseen_running(const struct run_record *r, const char *run_id)
{
    json_t *result = run_result_lost(run_id, "");

    json_object_set_new(result, "status", json_string(run_status_name(RUN_RUNNING)));
    json_object_set_new(result, "durationMs", json_integer(1000 * (clock_unix_s() - r->created)));
    json_object_del(result, "reason");
    return result;
}

/* Of a run without a result. */
static json_t *result_without(const struct sandbox_root *root, const struct run_record *r,
                              const char *run_id)
{
    if (runlock_alive(root->fd, run_id))
        return unseen_running(r, run_id);
    return run_result_lost(run_id, "its supervisor ended without leaving a result (the server "
                                   "died, or its disk is full): nobody knows the outcome");
}

/* Waits for the result as long as somebody may be writing it. */
static int read_record(const struct sandbox_root *root, const char *run_id, const char *tenant,
                       struct run_record *out, json_t **out_result, struct err *e)
{
    struct deadline last = deadline_in_ms(LAST_MS);

    for (;;) {
        /* Asked before looking: what is written in between is seen. */
        bool alive = run_id_ok(run_id) && runlock_alive(root->fd, run_id);
        if (run_record_read(root, run_id, tenant, out, out_result, e) < 0)
            return -1;
        if (*out_result || !alive || deadline_passed(last))
            return 0;
        run_record_clear(out);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
}

static void add_new_output(const struct sandbox_root *root, const char *run_id, bool known,
                           uint64_t since, json_t *result)
{
    struct err e = ERR_INIT;
    struct output_ring *output = known ? run_record_output(root, run_id, &e) : NULL;

    if (!output) {
        output = output_ring_new(1);
        output_ring_resume(output, since);
    }
    run_result_add_new(result, output, since, true);
    output_ring_free(output);
}

json_t *run_lookup_get(const struct sandbox_root *root, const json_t *head, struct err *e)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *run_id = json_get_string(head, "runId");
    json_int_t since = json_get_integer(head, "sinceByte", -1);
    AUTO_RUN_RECORD struct run_record r = RUN_RECORD_INIT;
    json_t *result = NULL;

    if (!tenant || !run_id) {
        run_not_found(e);
        return NULL;
    }
    if (read_record(root, run_id, tenant, &r, &result, e) < 0)
        return NULL;
    bool known = result != NULL;
    if (!known)
        result = result_without(root, &r, run_id);
    run_record_tell(&r, result);
    if (since >= 0)
        add_new_output(root, run_id, known, (uint64_t)since, result);
    return result;
}

/* ---- a tenant's runs ---- */

static json_t *row_of(const struct child *c, int64_t now_ms, int64_t now_unix)
{
    const struct run_record r = {
        .conversation = c->conversation,
        .language = (char *)(uintptr_t)c->language,
        .created = now_unix - (now_ms - c->since_ms) / 1000,
    };
    json_t *row = run_record_row(c->run_id, &r, run_status_name(RUN_RUNNING));

    json_object_del(row, "expiresAt"); /* it may never be kept */
    return row;
}

static bool is_listed(const json_t *rows, const char *run_id)
{
    size_t i;
    const json_t *row;

    json_array_foreach(rows, i, row)
    {
        const char *id = json_get_string(row, "runId");
        if (id && strcmp(id, run_id) == 0)
            return true;
    }
    return false;
}

json_t *run_lookup_list(const struct sandbox_root *root, const struct children *children,
                        const json_t *head, struct err *e)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *conversation = json_get_string(head, "conversationId");
    int64_t now_ms = clock_mono_ms(), now = clock_unix_s();

    if (!tenant) {
        err_set(e, ERR_INVALID, "list_runs: tenant is missing");
        return NULL;
    }
    json_t *rows = run_record_list(root, tenant, conversation, now, e);
    if (!rows)
        return NULL;
    for (const struct child *c = NULL; (c = children_next(children, (struct child *)(uintptr_t)c));)
        if (c->claimed && c->state != CHILD_ENDED && c->tenant && c->conversation &&
            strcmp(c->tenant, tenant) == 0 &&
            (!conversation || strcmp(c->conversation, conversation) == 0) &&
            !is_listed(rows, c->run_id))
            json_insert_descending(rows, "createdAt", row_of(c, now_ms, now));
    while (json_array_size(rows) > RUN_LIST_MAX)
        json_array_remove(rows, json_array_size(rows) - 1);
    return json_pack("{s:o}", "runs", rows);
}
