/* Lasting sandboxes in the main process's books: who may have one, and who has which. */
#include "config.h"

#include "common/base/log.h"
#include "common/base/sock.h"
#include "common/broker/broker.h"
#include "common/protocol/wire.h"
#include "common/records/psandbox_record.h"
#include "common/records/run_record.h"
#include "common/rpc/json.h"
#include "common/supervisor/supervisor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What a call wants. Points into its head. */
struct want {
    const char *tenant, *conversation, *language, *image;
    bool session;
    char sandbox_dir[SANDBOX_NAME_LEN + 1];
};

/* ---- who may have one ---- */

static bool lives(const struct child *child, const void *ctx)
{
    (void)ctx;
    return child->kind == CHILD_PSANDBOX && child->state != CHILD_ENDED;
}

static bool is_of_tenant(const struct child *child, const void *tenant)
{
    return lives(child, NULL) && strcmp(child->tenant, tenant) == 0;
}

static int check_room(struct broker *b, const char *tenant, struct err *e)
{
    const struct psandbox_settings *s = &b->config->persistent;

    child_io_catch_up(b, CHILD_PSANDBOX); /* whoever closed one may have another */
    if (children_count(b->children, is_of_tenant, tenant) >= s->tenant_max)
        return err_set(e, ERR_LIMIT,
                       "%" PRIu64 " sandboxes that stay are open, which is the most "
                       "(SANDBOX_PERSISTENT_MAX): close one first",
                       s->tenant_max);
    if (children_count(b->children, lives, NULL) >= s->server_max)
        return err_set(e, ERR_BUSY,
                       "the server has no room for another sandbox that stays; try again later");
    return 0;
}

static int check_image(const struct broker *b, const char *image, struct err *e)
{
    if (*b->housekeeper.trouble)
        return err_set(e, ERR_UNAVAILABLE, "%s", b->housekeeper.trouble);
    if (strlen(image) > PSANDBOX_IMAGE_MAX ||
        !engine_image_allowed(b->config->persistent.images, image))
        return err_set(e, ERR_DENIED,
                       "image: this server does not allow it (SANDBOX_PERSISTENT_IMAGES)");
    return 0;
}

static int check_session(const char *language, struct err *e)
{
    if (!language || !psandbox_session_known(language))
        return err_set(e, ERR_INVALID,
                       "session: only python and typescript keep variables between calls");
    return 0;
}

static int decode(const struct broker *b, const json_t *head, struct want *out, struct err *e)
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
    if (json_get_bool(head, "network", 0) && !b->config->limits.network)
        return err_set(e, ERR_DENIED, "network: this server does not allow it (SANDBOX_NETWORK)");
    if (out->session && check_session(out->language, e) < 0)
        return -1;
    return sandbox_name(&b->root, out->tenant, out->conversation, out->sandbox_dir, e);
}

/* ---- making one ---- */

static int begin(struct broker *b, int fd, const json_t *head, const struct want *want,
                 struct err *e)
{
    struct psandbox_spawn spawn = {.tenant = want->tenant,
                                   .conversation = want->conversation,
                                   .language = want->language,
                                   .sandbox_dir = want->sandbox_dir,
                                   .session = want->session,
                                   .head = head,
                                   .connection = fd};

    if (check_room(b, want->tenant, e) < 0 || (want->image && check_image(b, want->image, e) < 0))
        return -1;
    if (want->language && !(spawn.runner = broker_runner(b, want->language, e)))
        return -1;
    return spawn_psandbox(b, &spawn, e) ? 0 : -1;
}

void psandboxes_create(struct broker *b, int take_fd, const json_t *head)
{
    AUTO_FD int fd = take_fd;
    struct err e = ERR_INIT;
    struct want want;

    if (decode(b, head, &want, &e) < 0 || begin(b, fd, head, &want, &e) < 0)
        reply_send_error(TAKE_FD(fd), &e);
}

/* false: it is just ending. */
static bool hand_to(struct broker *b, struct child *child, int fd, const json_t *head)
{
    struct err e = ERR_INIT;

    if (!reattach_is(child))
        return child_hand(child, "hand", head, 0, fd, &e) == 0;
    reattach_hold(b, child, fd, head);
    return true;
}

/* The one that keeps the variables of this conversation. */
static struct child *find_session(struct broker *b, const struct want *want)
{
    for (struct child *c = NULL; (c = children_next(b->children, c));)
        if (lives(c, NULL) && c->session && strcmp(c->sandbox_dir, want->sandbox_dir) == 0 &&
            strcmp(c->language, want->language) == 0)
            return c;
    return NULL;
}

void psandboxes_session(struct broker *b, int take_fd, const json_t *head)
{
    AUTO_FD int fd = take_fd;
    struct err e = ERR_INIT;
    struct want want;

    if (decode(b, head, &want, &e) < 0) {
        reply_send_error(TAKE_FD(fd), &e);
        return;
    }
    child_io_catch_up(b, CHILD_PSANDBOX); /* one that has been reset is not asked again */
    struct child *child = find_session(b, &want);
    if (!child) { /* it may have been begun while the broker before ended */
        reattach_expect(b);
        child = find_session(b, &want);
    }
    if (child && hand_to(b, child, fd, head))
        return;
    if (begin(b, fd, head, &want, &e) < 0)
        reply_send_error(TAKE_FD(fd), &e);
}

/* ---- those that live ---- */

static struct child *find_living(struct broker *b, const char *tenant, const char *run_id)
{
    for (struct child *c = NULL; (c = children_next(b->children, c));)
        if (is_of_tenant(c, tenant) && strcmp(c->run_id, run_id) == 0)
            return c;
    return NULL;
}

bool psandboxes_hand(struct broker *b, int fd, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *psandbox_id = json_get_string(head, "sandboxId");
    const char *run_id = psandbox_id ? psandbox_run_id(psandbox_id) : NULL;

    if (!tenant || !run_id)
        return false;
    struct child *child = find_living(b, tenant, run_id);
    if (!child)
        child = reattach_discover(b, tenant, run_id);
    return child && hand_to(b, child, fd, head);
}

static void let_go(struct broker *b)
{
    for (struct child *c = NULL, *next = children_next(b->children, NULL); (c = next);) {
        next = children_next(b->children, c);
        if (c->kind != CHILD_PSANDBOX)
            continue;
        child_io_release(b, c);
        children_remove(b->children, c);
    }
}

void psandboxes_end(struct broker *b)
{
    struct err e = ERR_INIT;

    reattach_end(b);
    if (b->relieved) {
        let_go(b);
        return;
    }
    for (struct child *c = NULL; (c = children_next(b->children, c));) {
        if (!lives(c, NULL))
            continue;
        if (child_tell(c, "end", &e) < 0)
            log_debug("a persistent sandbox does not listen: %s", e.text);
        child_set_state(c, CHILD_ENDED);
    }
}

/* ---- those of a broker before ---- */

static int describe(struct broker *b, struct child *child, const json_t *head)
{
    const char *run_id = json_get_string(head, "runId");
    const char *tenant = json_get_string(head, "tenant");
    const char *conversation = json_get_string(head, "conversationId");
    const char *language = json_get_string(head, "language");
    struct err e = ERR_INIT;

    if (!run_id || !run_id_ok(run_id) || !tenant || !conversation || !language ||
        sandbox_name(&b->root, tenant, conversation, child->sandbox_dir, &e) < 0)
        return -1;
    memcpy(child->run_id, run_id, sizeof child->run_id);
    snprintf(child->language, sizeof child->language, "%s", language);
    child_set_owner(child, tenant, conversation);
    child->session = json_get_bool(head, "session", 0);
    child->network = json_get_bool(head, "network", 0);
    child_set_state(child, CHILD_RUNNING);
    return 0;
}

void psandboxes_adopt(struct broker *b, int take_fd, const json_t *head)
{
    AUTO_FD int fd = take_fd;

    if (!child_io_come_from_us(fd)) {
        log_warn("refused a persistent sandbox of another user");
        return;
    }
    struct child *child = children_add(b->children, CHILD_PSANDBOX);
    if (describe(b, child, head) < 0) {
        log_warn("a persistent sandbox did not say whose it is");
        children_remove(b->children, child);
        return;
    }
    log_info("sandbox %s stays; it was made under another broker", child->run_id);
    child->channel = TAKE_FD(fd);
    child_io_watch(b, child);
    reattach_settle(b, child);
}
