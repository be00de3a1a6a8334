#include "config.h"

#include "common/broker/reattach.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/broker/broker.h"
#include "common/protocol/wire.h"
#include "common/records/psandbox_record.h"
#include "common/records/run_lock.h"
#include "common/rpc/json.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define PATIENCE_MS 5000 /* of a call that is held; then it is busy, */
#define RETRY_MS    2000 /* and should come back in */
#define LOOK_MS     1000
#define YOUNG_MS    10000

struct reattach_call {
    struct reattach_call *next;
    int fd;
    json_t *head;
    struct deadline end;
    char run_id[RUN_ID_LEN + 1];
};

/* ---- who is reattach ---- */

bool reattach_is(const struct child *child)
{
    return child->kind == CHILD_PSANDBOX && child->pid == 0 && child->channel < 0;
}

static bool is_known(const struct broker *b, const char *run_id)
{
    for (const struct child *c = NULL; (c = children_next(b->children, c));)
        if (strcmp(c->run_id, run_id) == 0)
            return true;
    return false;
}

/* NULL: it does not live, is in the books already, or its record makes no sense. */
static struct child *enter(struct broker *b, const char *run_id, const json_t *record)
{
    const char *tenant = json_get_string(record, "tenant");
    const char *conversation = json_get_string(record, "conversationId");
    const char *language = json_get_string(record, "language");
    char sandbox_dir[SANDBOX_NAME_LEN + 1];
    struct err e = ERR_INIT;

    if (!psandbox_record_lives(&b->root, run_id, record) || is_known(b, run_id) ||
        sandbox_name(&b->root, tenant, conversation, sandbox_dir, &e) < 0)
        return NULL;
    struct child *child = children_add(b->children, CHILD_PSANDBOX);
    memcpy(child->run_id, run_id, sizeof child->run_id);
    memcpy(child->sandbox_dir, sandbox_dir, sizeof child->sandbox_dir);
    snprintf(child->language, sizeof child->language, "%s", language ? language : "");
    child_set_owner(child, tenant, conversation);
    child->session = json_get_bool(record, "session", 0);
    child->network = json_get_bool(record, "network", 0);
    child_set_state(child, CHILD_RUNNING);
    b->reattach.look = deadline_min(b->reattach.look, deadline_in_ms(LOOK_MS));
    return child;
}

static void enter_each(void *ctx, const char *run_id, const json_t *record)
{
    enter(ctx, run_id, record);
}

void reattach_init(struct reattach *a)
{
    *a = (struct reattach){.look = DEADLINE_NEVER, .young = deadline_in_ms(YOUNG_MS)};
}

void reattach_expect(struct broker *b)
{
    struct err e = ERR_INIT;

    if (deadline_passed(b->reattach.young))
        return;
    if (psandbox_record_each(&b->root, enter_each, b, &e) < 0)
        log_warn("persistent sandboxes of before: %s", e.text);
}

struct child *reattach_discover(struct broker *b, const char *tenant, const char *run_id)
{
    json_auto_t *record = is_known(b, run_id) ? NULL : psandbox_record_read(&b->root, run_id);

    if (!record || strcmp(json_get_string(record, "tenant"), tenant) != 0)
        return NULL;
    return enter(b, run_id, record);
}

/* ---- calls ---- */

void reattach_hold(struct broker *b, const struct child *child, int fd, const json_t *head)
{
    struct reattach_call *call = mem_alloc(sizeof *call);
    struct reattach_call **at = &b->reattach.first;

    *call = (struct reattach_call){.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3),
                                   .head = json_deep_copy(head),
                                   .end = deadline_in_ms(PATIENCE_MS)};
    memcpy(call->run_id, child->run_id, sizeof call->run_id);
    while (*at)
        at = &(*at)->next;
    *at = call;
}

/* Takes the first that is held for that sandbox, or (NULL) whose time is over, out of the list. */
static struct reattach_call *take_call(struct reattach *a, const char *run_id)
{
    for (struct reattach_call **at = &a->first; *at; at = &(*at)->next) {
        struct reattach_call *call = *at;

        if (run_id ? strcmp(call->run_id, run_id) != 0 : !deadline_passed(call->end))
            continue;
        *at = call->next;
        return call;
    }
    return NULL;
}

static void call_free(struct reattach_call *call)
{
    auto_close_fd(&call->fd);
    json_decref(call->head);
    free(call);
}

/* They begin anew; the books are others now. */
static void go_on(struct broker *b, const char *run_id)
{
    for (struct reattach_call *call; (call = take_call(&b->reattach, run_id));) {
        dispatch_call(b, TAKE_FD(call->fd), call->head, -1);
        call_free(call);
    }
}

static void refuse(struct reattach_call *call)
{
    struct err e;

    err_set(&e, ERR_BUSY,
            "the server has just been restarted, and this sandbox has not come back to it yet; try "
            "again in %d s",
            RETRY_MS / 1000);
    json_t *reply = wire_error_new(&e);
    json_object_set_new(json_object_get(reply, "error"), "retryAfterMs", json_integer(RETRY_MS));
    reply_send(TAKE_FD(call->fd), reply);
    call_free(call);
}

void reattach_settle(struct broker *b, const struct child *child)
{
    char run_id[RUN_ID_LEN + 1];

    memcpy(run_id, child->run_id, sizeof run_id);
    for (struct child *c = NULL, *next = children_next(b->children, NULL); (c = next);) {
        next = children_next(b->children, c);
        if (reattach_is(c) && strcmp(c->run_id, run_id) == 0)
            children_remove(b->children, c);
    }
    go_on(b, run_id);
}

/* ---- time ---- */

static bool has_ended(const struct broker *b, const struct child *child)
{
    return reattach_is(child) && !runlock_alive(b->root.fd, child->run_id);
}

static struct child *find(const struct broker *b,
                          bool (*is)(const struct broker *b, const struct child *child))
{
    struct child *c = NULL;

    while ((c = children_next(b->children, c)) && !is(b, c))
        ;
    return c;
}

static bool is_awaited(const struct broker *b, const struct child *child)
{
    (void)b;
    return reattach_is(child);
}

/* Those that have ended instead of coming back: their records tell their callers. */
static void look(struct broker *b)
{
    for (struct child *c; (c = find(b, has_ended));)
        reattach_settle(b, c);
    b->reattach.look = find(b, is_awaited) ? deadline_in_ms(LOOK_MS) : DEADLINE_NEVER;
}

void reattach_tick(struct broker *b)
{
    if (deadline_passed(b->reattach.look))
        look(b);
    for (struct reattach_call *call; (call = take_call(&b->reattach, NULL));)
        refuse(call);
}

struct deadline reattach_next(const struct reattach *a)
{
    return deadline_min(a->look, a->first ? a->first->end : DEADLINE_NEVER);
}

void reattach_end(struct broker *b)
{
    b->reattach.look = DEADLINE_NEVER;
    for (struct reattach_call *call; (call = b->reattach.first);) {
        b->reattach.first = call->next;
        refuse(call);
    }
    for (struct child *c; (c = find(b, is_awaited));)
        children_remove(b->children, c);
}
