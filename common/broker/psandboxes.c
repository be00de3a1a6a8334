#include "config.h"

#include "common/broker/psandboxes.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/share.h"
#include "common/protocol/wire.h"
#include "common/records/psandbox_record.h"
#include "common/records/run_lock.h"
#include "common/records/run_record.h"
#include "common/rpc/json.h"
#include "common/supervisor/supervisor.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define HOLD_MS  5000 /* a call; then it is busy, */
#define RETRY_MS 2000 /* and should come back in */
#define CHECK_MS 1000
#define YOUNG_MS 10000

static bool is_open(const struct child *child, const void *tenant)
{
    return child->kind == CHILD_PSANDBOX && child->state != CHILD_ENDED &&
           (!tenant || strcmp(child->tenant, tenant) == 0);
}

/* ---- those of a broker before ---- */

static struct child *find_reattaching(const struct psandboxes *p, const char *run_id)
{
    struct child *c = NULL;

    while ((c = children_next(p->spawner->children, c)) &&
           !(c->reattaching && (!run_id || strcmp(c->run_id, run_id) == 0)))
        ;
    return c;
}

/* NULL: it has ended, is among the children already, or its record makes no sense. */
static struct child *expect(struct psandboxes *p, const char *run_id, const json_t *record)
{
    for (const struct child *c = NULL; (c = children_next(p->spawner->children, c));)
        if (strcmp(c->run_id, run_id) == 0)
            return NULL;
    if (json_get_integer(record, "endedAt", 0) > 0 || !run_lock_reap(p->spawner->root->fd, run_id))
        return NULL;
    struct child *child = spawn_adopt_row(p->spawner, CHILD_PSANDBOX, run_id, record);
    if (!child)
        return NULL;
    child->reattaching = true;
    p->check = deadline_min(p->check, deadline_in_ms(CHECK_MS));
    return child;
}

static void expect_each(void *ctx, const char *run_id, const json_t *record)
{
    expect(ctx, run_id, record);
}

static void expect_all(struct psandboxes *p)
{
    struct err e = ERR_INIT;

    if (!deadline_passed(p->young) &&
        psandbox_record_each(p->spawner->root, expect_each, p, &e) < 0)
        log_warn("cannot list the persistent sandboxes of the broker before: %s", e.text);
}

/* One of that id that the broker before may have begun meanwhile. */
static struct child *expect_one(struct psandboxes *p, const char *tenant, const char *run_id)
{
    json_auto_t *record = deadline_passed(p->young)
                              ? NULL
                              : psandbox_record_read(p->spawner->root, run_id);
    const char *owner = json_get_string(record, "tenant");

    return owner && strcmp(owner, tenant) == 0 ? expect(p, run_id, record) : NULL;
}

/* ---- held calls ---- */

struct held_call {
    struct held_call *next;
    int fd;
    json_t *head;
    struct deadline end;
    char run_id[RUN_ID_LEN + 1];
};

static void call_hold(struct psandboxes *p, const struct child *child, int fd, const json_t *head)
{
    struct held_call *call = mem_alloc(sizeof *call);
    struct held_call **at = &p->first;

    *call = (struct held_call){.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3),
                               .head = json_deep_copy(head),
                               .end = deadline_in_ms(HOLD_MS)};
    memcpy(call->run_id, child->run_id, sizeof call->run_id);
    while (*at)
        at = &(*at)->next;
    *at = call;
}

static void call_refuse(int take_fd)
{
    struct err e;

    err_set(&e, ERR_BUSY,
            "the server has just been restarted, and this sandbox has not come back to it yet; try "
            "again in %d s",
            RETRY_MS / 1000);
    json_t *reply = wire_error_new(&e);
    json_object_set_new(json_object_get(reply, "error"), "retryAfterMs", json_integer(RETRY_MS));
    reply_send(take_fd, reply);
}

/* Ends the holding of calls for that sandbox, which are dispatched again; run_id NULL: of those
 * whose time is over, or (all) of all, which are refused. */
static void calls_end(struct psandboxes *p, const char *run_id, bool all)
{
    for (struct held_call **at = &p->first; *at;) {
        struct held_call *call = *at;

        if (run_id ? strcmp(call->run_id, run_id) != 0 : !all && !deadline_passed(call->end)) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        if (run_id)
            p->dispatch(p->ctx, TAKE_FD(call->fd), call->head, -1);
        else
            call_refuse(TAKE_FD(call->fd));
        json_decref(call->head);
        free(call);
        at = &p->first; /* a dispatched call may have been held again, at the end */
    }
}

/* One is back, with a row of its own, or has ended. */
static void settle(struct psandboxes *p, const struct child *child)
{
    char run_id[RUN_ID_LEN + 1];

    memcpy(run_id, child->run_id, sizeof run_id);
    for (struct child *c; (c = find_reattaching(p, run_id));)
        children_remove(p->spawner->children, c);
    calls_end(p, run_id, false);
}

/* ---- making one ---- */

/* What a call wants. Points into its head. */
struct want {
    const char *tenant, *conversation, *language, *image;
    bool session;
    char sandbox_dir[SANDBOX_NAME_LEN + 1];
};

static int want_decode(const struct psandboxes *p, const json_t *head, struct want *out,
                       struct err *e)
{
    *out = (struct want){.tenant = json_get_string(head, "tenant"),
                         .conversation = json_get_string(head, "conversationId"),
                         .language = json_get_string(head, "language"),
                         .image = json_get_string(head, "image"),
                         .session = op_of(head) == OP_SESSION};
    if (!out->tenant || !out->conversation || !out->language == !out->image)
        return err_set(e, ERR_INVALID, "language or image: one of them is needed");
    if (out->language && strlen(out->language) > RUN_LANGUAGE_MAX)
        return err_set(e, ERR_NOT_FOUND, "language: unknown");
    if (runners_check_network(p->spawner->runners, p->spawner->config->limits.network,
                              wire_network(head), e) < 0)
        return -1;
    if (out->session && (!out->language || !psandbox_session_known(out->language)))
        return err_set(e, ERR_INVALID,
                       "session: only python and typescript keep variables between calls");
    return sandbox_name(p->spawner->root, out->tenant, out->conversation, out->sandbox_dir, e);
}

static int check_room(const struct psandboxes *p, const char *tenant, struct err *e)
{
    const struct psandbox_settings *s = &p->spawner->config->limits.persistent;
    size_t own = children_count(p->spawner->children, is_open, tenant);

    if (own >= s->tenant_max)
        return err_set(e, ERR_LIMIT,
                       "%" PRIu64 " persistent sandboxes are open, which is the most "
                       "(SANDBOX_PERSISTENT_MAX): close one first",
                       s->tenant_max);
    if (!share_allows(own, children_count(p->spawner->children, is_open, NULL), s->server_max))
        return err_set(e, ERR_BUSY,
                       "the server has no room for another persistent sandbox of yours "
                       "(SANDBOX_PERSISTENT_SERVER); close one, or try again later");
    return 0;
}

static int check_image(const struct psandboxes *p, const char *image, struct err *e)
{
    const char *engine_error = p->spawner->runners->engine_error;

    if (*engine_error)
        return err_set(e, ERR_UNAVAILABLE, "%s", engine_error);
    if (strlen(image) > PSANDBOX_IMAGE_MAX ||
        !engine_image_allowed(p->spawner->config->limits.persistent.images, image))
        return err_set(e, ERR_DENIED,
                       "image: this server does not allow it (SANDBOX_PERSISTENT_IMAGES)");
    return 0;
}

static int psandbox_start_new(const struct psandboxes *p, int fd, const json_t *head,
                              const struct want *want, struct err *e)
{
    struct psandbox_spawn spawn = {.tenant = want->tenant,
                                   .conversation = want->conversation,
                                   .language = want->language,
                                   .sandbox_dir = want->sandbox_dir,
                                   .session = want->session,
                                   .head = head,
                                   .connection = fd};

    if (check_room(p, want->tenant, e) < 0 || (want->image && check_image(p, want->image, e) < 0))
        return -1;
    if (want->language && !(spawn.runner = runners_find(p->spawner->runners, want->language, e)))
        return -1;
    return spawn_psandbox(p->spawner, &spawn, e) ? 0 : -1;
}

void psandboxes_create(struct psandboxes *p, int take_fd, const json_t *head)
{
    AUTO_FD int fd = take_fd;
    struct err e = ERR_INIT;
    struct want want;

    if (want_decode(p, head, &want, &e) < 0 || psandbox_start_new(p, fd, head, &want, &e) < 0)
        reply_send_error(TAKE_FD(fd), &e);
}

/* ---- those that live ---- */

/* false: it is just ending. */
static bool psandbox_hand(struct psandboxes *p, struct child *child, int fd, const json_t *head)
{
    struct err e = ERR_INIT;

    if (!child->reattaching)
        return child_io_hand(child, head, fd, &e) == 0;
    call_hold(p, child, fd, head);
    return true;
}

bool psandboxes_hand(struct psandboxes *p, int fd, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *psandbox_id = json_get_string(head, "sandboxId");
    const char *run_id = psandbox_id ? psandbox_run_id(psandbox_id) : NULL;
    struct child *child = NULL;

    if (!tenant || !run_id)
        return false;
    while ((child = children_next(p->spawner->children, child)) &&
           !(is_open(child, tenant) && strcmp(child->run_id, run_id) == 0))
        ;
    if (!child)
        child = expect_one(p, tenant, run_id);
    return child && psandbox_hand(p, child, fd, head);
}

static struct child *find_with_run(const struct psandboxes *p, const char *tenant,
                                   const char *run_id)
{
    struct child *c = NULL;

    while ((c = children_next(p->spawner->children, c)) &&
           !(is_open(c, tenant) && psandbox_has_run(c->run_id, run_id)))
        ;
    return c;
}

bool psandboxes_hand_run(struct psandboxes *p, int fd, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *run_id = json_get_string(head, "runId");

    if (!tenant || !run_id)
        return false;
    struct child *child = find_with_run(p, tenant, run_id);
    if (!child) {
        expect_all(p);
        child = find_with_run(p, tenant, run_id);
    }
    return child && psandbox_hand(p, child, fd, head);
}

/* The one that keeps the variables of this conversation. */
static struct child *find_session(const struct psandboxes *p, const struct want *want)
{
    struct child *c = NULL;

    while ((c = children_next(p->spawner->children, c)) &&
           !(is_open(c, NULL) && c->session && strcmp(c->sandbox_dir, want->sandbox_dir) == 0 &&
             strcmp(c->language, want->language) == 0))
        ;
    return c;
}

void psandboxes_session(struct psandboxes *p, int take_fd, const json_t *head)
{
    AUTO_FD int fd = take_fd;
    struct err e = ERR_INIT;
    struct want want;

    if (want_decode(p, head, &want, &e) < 0) {
        reply_send_error(TAKE_FD(fd), &e);
        return;
    }
    struct child *child = find_session(p, &want);
    if (!child) { /* it may have been begun while the broker before ended */
        expect_all(p);
        child = find_session(p, &want);
    }
    if (child && psandbox_hand(p, child, fd, head))
        return;
    if (psandbox_start_new(p, fd, head, &want, &e) < 0)
        reply_send_error(TAKE_FD(fd), &e);
}

void psandboxes_adopt(struct psandboxes *p, int take_fd, const json_t *head)
{
    struct err e = ERR_INIT;
    struct child *child = spawn_adopt_row(p->spawner, CHILD_PSANDBOX,
                                          json_get_string(head, "runId"), head);

    AUTO_FD int fd = take_fd;

    if (!child || !json_get_string(head, "language")) {
        log_warn("a persistent sandbox came back without saying whose it is");
    } else if (child_io_open(p->spawner->io, child, TAKE_FD(fd), &e) < 0) {
        log_error("sandbox %s: %s", child->run_id, e.text); /* it tries again */
    } else {
        child->calls = json_incref(json_object_get(head, "runs")); /* the head goes */
        log_info("sandbox %s goes on; it was made under another broker", child->run_id);
        settle(p, child);
        return;
    }
    if (child)
        children_remove(p->spawner->children, child);
}

/* ---- time ---- */

void psandboxes_init(struct psandboxes *p, const struct spawner *spawner)
{
    p->spawner = spawner;
    p->check = DEADLINE_NEVER;
    p->young = deadline_in_ms(YOUNG_MS);
    expect_all(p);
}

void psandboxes_tick(struct psandboxes *p)
{
    /* Those that have ended instead of coming back: their records tell their callers. */
    for (struct child *c = NULL;
         deadline_passed(p->check) && (c = children_next(p->spawner->children, c));)
        if (c->reattaching && !run_lock_reap(p->spawner->root->fd, c->run_id)) {
            settle(p, c);
            c = NULL; /* rows have gone */
        }
    if (deadline_passed(p->check))
        p->check = find_reattaching(p, NULL) ? deadline_in_ms(CHECK_MS) : DEADLINE_NEVER;
    calls_end(p, NULL, false);
}

struct deadline psandboxes_due(const struct psandboxes *p)
{
    return deadline_min(p->check, p->first ? p->first->end : DEADLINE_NEVER);
}

void psandboxes_end(struct psandboxes *p, bool relieved)
{
    struct err e = ERR_INIT;

    p->check = DEADLINE_NEVER;
    calls_end(p, NULL, true);
    for (struct child *c = NULL, *next = children_next(p->spawner->children, NULL); (c = next);) {
        next = children_next(p->spawner->children, c);
        if (c->reattaching || (relieved && c->kind == CHILD_PSANDBOX)) {
            child_io_close(p->spawner->io, c);
            children_remove(p->spawner->children, c);
        } else if (is_open(c, NULL)) {
            if (child_io_tell(c, "end", &e) < 0)
                log_debug("a persistent sandbox cannot be told to end: %s", e.text);
            child_set_state(c, CHILD_ENDED);
        }
    }
}
