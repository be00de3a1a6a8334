/* Lasting sandboxes in the main process's books: who may have one, and who has which. */
#include "config.h"

#include "common/base/log.h"
#include "common/base/sock.h"
#include "common/broker/broker.h"
#include "common/broker/run_record.h"
#include "common/broker/stay.h"
#include "common/broker/stay_record.h"
#include "common/broker/wire.h"
#include "common/rpc/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a call wants. Points into its head. */
struct want {
    const char *tenant, *conversation, *language, *image;
    bool session;
    char box[SANDBOX_NAME_LEN + 1];
};

static void refuse(int take_fd, const struct err *e)
{
    calls_answer(take_fd, wire_error_new(e));
}

/* ---- who may have one ---- */

static bool lives(const struct child *child, const void *ctx)
{
    (void)ctx;
    return child->kind == CHILD_BOX && child->state != CHILD_ENDED;
}

static bool is_of_tenant(const struct child *child, const void *tenant)
{
    return lives(child, NULL) && strcmp(child->tenant, tenant) == 0;
}

static int check_room(struct broker *b, const char *tenant, struct err *e)
{
    const struct stay_settings *s = &b->config->stay;

    supervisors_catch_up(b, CHILD_BOX); /* whoever closed one may have another */
    if (children_count(b->children, is_of_tenant, tenant) >= s->tenant_max)
        return err_set(e, ERR_LIMIT,
                       "%" PRIu64 " sandboxes that stay are open, which is the most "
                       "(SANDBOX_STAY_MAX): close one first",
                       s->tenant_max);
    if (children_count(b->children, lives, NULL) >= s->server_max)
        return err_set(e, ERR_BUSY,
                       "the server has no room for another sandbox that stays; try again later");
    return 0;
}

static int check_image(const struct broker *b, const char *image, struct err *e)
{
    if (*b->keeper.trouble)
        return err_set(e, ERR_UNAVAILABLE, "%s", b->keeper.trouble);
    if (strlen(image) > BOX_IMAGE_MAX || !engine_image_allowed(b->config->stay.images, image))
        return err_set(e, ERR_DENIED, "image: this server does not allow it (SANDBOX_STAY_IMAGES)");
    return 0;
}

static int check_session(const char *language, struct err *e)
{
    if (!language || !stay_session_known(language))
        return err_set(e, ERR_INVALID,
                       "session: only python and typescript keep variables between calls");
    return 0;
}

static int decode(const struct broker *b, const json_t *head, struct want *out, struct err *e)
{
    const char *op = json_get_string(head, "op");

    *out = (struct want){.tenant = json_get_string(head, "tenant"),
                         .conversation = json_get_string(head, "conversation"),
                         .language = json_get_string(head, "language"),
                         .image = json_get_string(head, "image"),
                         .session = strcmp(op, "session") == 0};
    if (!out->tenant || !out->conversation || !out->language == !out->image)
        return err_set(e, ERR_INVALID, "language or image: one of them is needed");
    if (out->language && strlen(out->language) > RUN_LANGUAGE_MAX)
        return err_set(e, ERR_NOT_FOUND, "language: unknown");
    if (json_get_bool(head, "network", 0) && !b->config->limits.network)
        return err_set(e, ERR_DENIED, "network: this server does not allow it (SANDBOX_NETWORK)");
    if (out->session && check_session(out->language, e) < 0)
        return -1;
    return sandbox_name(&b->root, out->tenant, out->conversation, out->box, e);
}

/* ---- making one ---- */

static int begin(struct broker *b, int fd, const json_t *head, const struct want *want,
                 struct err *e)
{
    struct stay_birth birth = {.tenant = want->tenant,
                               .conversation = want->conversation,
                               .language = want->language,
                               .box = want->box,
                               .session = want->session,
                               .head = head,
                               .connection = fd};

    if (check_room(b, want->tenant, e) < 0 || (want->image && check_image(b, want->image, e) < 0))
        return -1;
    if (want->language && !(birth.runner = broker_runner(b, want->language, e)))
        return -1;
    return birth_stay(b, &birth, e) ? 0 : -1;
}

void stays_create(struct broker *b, int take_fd, const json_t *head)
{
    AUTO_FD int fd = take_fd;
    struct err e = ERR_INIT;
    struct want want;

    if (decode(b, head, &want, &e) < 0 || begin(b, fd, head, &want, &e) < 0)
        refuse(TAKE_FD(fd), &e);
}

/* false: it is just ending. */
static bool hand_to(struct broker *b, struct child *child, int fd, const json_t *head)
{
    struct err e = ERR_INIT;

    if (!awaited_is(child))
        return child_hand(child, "hand", head, 0, fd, &e) == 0;
    awaited_hold(b, child, fd, head);
    return true;
}

/* The one that keeps the variables of this conversation. */
static struct child *find_session(struct broker *b, const struct want *want)
{
    for (struct child *c = NULL; (c = children_next(b->children, c));)
        if (lives(c, NULL) && c->session && strcmp(c->box, want->box) == 0 &&
            strcmp(c->language, want->language) == 0)
            return c;
    return NULL;
}

void stays_session(struct broker *b, int take_fd, const json_t *head)
{
    AUTO_FD int fd = take_fd;
    struct err e = ERR_INIT;
    struct want want;

    if (decode(b, head, &want, &e) < 0) {
        refuse(TAKE_FD(fd), &e);
        return;
    }
    supervisors_catch_up(b, CHILD_BOX); /* one that has been reset is not asked again */
    struct child *child = find_session(b, &want);
    if (!child) { /* it may have been begun while the broker before ended */
        awaited_expect(b);
        child = find_session(b, &want);
    }
    if (child && hand_to(b, child, fd, head))
        return;
    if (begin(b, fd, head, &want, &e) < 0)
        refuse(TAKE_FD(fd), &e);
}

/* ---- those that live ---- */

static struct child *find_living(struct broker *b, const char *tenant, const char *run_id)
{
    for (struct child *c = NULL; (c = children_next(b->children, c));)
        if (is_of_tenant(c, tenant) && strcmp(c->run_id, run_id) == 0)
            return c;
    return NULL;
}

bool stays_hand(struct broker *b, int fd, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *box_id = json_get_string(head, "sandboxId");
    const char *run_id = box_id ? stay_run_id(box_id) : NULL;

    if (!tenant || !run_id)
        return false;
    struct child *child = find_living(b, tenant, run_id);
    if (!child)
        child = awaited_discover(b, tenant, run_id);
    return child && hand_to(b, child, fd, head);
}

static void let_go(struct broker *b)
{
    for (struct child *c = NULL, *next = children_next(b->children, NULL); (c = next);) {
        next = children_next(b->children, c);
        if (c->kind != CHILD_BOX)
            continue;
        supervisors_dismiss(b, c);
        children_remove(b->children, c);
    }
}

void stays_end(struct broker *b)
{
    struct err e = ERR_INIT;

    awaited_end(b);
    if (b->relieved) {
        let_go(b);
        return;
    }
    for (struct child *c = NULL; (c = children_next(b->children, c));) {
        if (!lives(c, NULL))
            continue;
        if (child_tell(c, "end", &e) < 0)
            log_debug("a lasting sandbox does not listen: %s", e.text);
        child_set_state(c, CHILD_ENDED);
    }
}

/* ---- those of a broker before ---- */

static int describe(struct broker *b, struct child *child, const json_t *head)
{
    const char *run_id = json_get_string(head, "runId");
    const char *tenant = json_get_string(head, "tenant");
    const char *conversation = json_get_string(head, "conversation");
    const char *language = json_get_string(head, "language");
    struct err e = ERR_INIT;

    if (!run_id || !run_id_ok(run_id) || !tenant || !conversation || !language ||
        sandbox_name(&b->root, tenant, conversation, child->box, &e) < 0)
        return -1;
    memcpy(child->run_id, run_id, sizeof child->run_id);
    snprintf(child->language, sizeof child->language, "%s", language);
    child_set_owner(child, tenant, conversation);
    child->session = json_get_bool(head, "session", 0);
    child->network = json_get_bool(head, "network", 0);
    child_set_state(child, CHILD_RUNNING);
    return 0;
}

void stays_adopt(struct broker *b, int take_fd, const json_t *head)
{
    AUTO_FD int fd = take_fd;

    if (!supervisors_come_from_us(fd)) {
        log_warn("refused a lasting sandbox of another user");
        return;
    }
    struct child *child = children_add(b->children, CHILD_BOX);
    if (describe(b, child, head) < 0) {
        log_warn("a lasting sandbox did not say whose it is");
        children_remove(b->children, child);
        return;
    }
    log_info("sandbox %s stays; it was made under another broker", child->run_id);
    child->channel = TAKE_FD(fd);
    supervisors_watch(b, child);
    awaited_settle(b, child);
}
