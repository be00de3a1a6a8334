#include "config.h"

#include "common/broker/broker.h"

#include "common/base/share.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"
#include "common/supervisor/supervisor.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static bool is_open(const struct child *child, const void *tenant)
{
    return child->kind == CHILD_PSANDBOX && child_takes_calls(child) &&
           (!tenant || strcmp(child->tenant, tenant) == 0);
}

/* What a call wants. Points into its head. */
struct want {
    const char *tenant, *conversation, *language, *image;
    bool session;
    char sandbox_dir[SANDBOX_NAME_LEN + 1];
};

static int want_decode(const struct spawner *s, const json_t *head, struct want *out, struct err *e)
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
    if (runners_check_network(s->runners, s->config->limits.network, wire_network(head), e) < 0)
        return -1;
    if (out->session && (!out->language || !psandbox_session_known(out->language)))
        return err_set(e, ERR_INVALID,
                       "session: only python and typescript keep variables between calls");
    return sandbox_name(s->root, out->tenant, out->conversation, out->sandbox_dir, e);
}

/* A session that runs nothing of the tenant that has most; of those the one that is unused longest.
 * To a tenant that has own, only those give way who then still have more; to one that has none,
 * everyone. NULL: there is none. */
static struct child *find_others_session(const struct spawner *s, size_t own)
{
    struct child *found = NULL;
    size_t most = own > 0 ? own + 1 : 0;

    for (struct child *c = NULL; (c = children_next(s->children, c));) {
        size_t n = child_is_idle_session(c) ? children_count(s->children, is_open, c->tenant) : 0;

        if (n > most || (found && n == most && c->used_us < found->used_us)) {
            found = c;
            most = n;
        }
    }
    return found;
}

/* A session of run_code gives way, its files stay and its next call says so; a sandbox that a
 * client made does not, since its client counts on all that is in it. Nor does it push out a
 * session of others. */
static bool make_room(const struct spawner *s, const struct want *want)
{
    const struct psandbox_settings *most = &s->config->limits.persistent;
    const size_t own = children_count(s->children, is_open, want->tenant);
    const size_t all = children_count(s->children, is_open, NULL);
    struct child *session = NULL;

    if (own < most->tenant_max && share_allows(own, all, most->server_max))
        return true;
    session = children_find_idle_session(s->children, want->tenant);
    if (!session && want->session && own < most->tenant_max)
        session = find_others_session(s, own);
    if (!session)
        return false;
    supervisors_end_one(session, "another session needed its place");
    return true;
}

static int check_room(const struct spawner *s, const struct want *want, struct err *e)
{
    const struct psandbox_settings *most = &s->config->limits.persistent;
    /* What the caller of either has: run_code alone, or close_sandbox, too. */
    const char *way = want->session
                          ? "call again without session, or when one has ended what it runs"
                          : "close one first (close_sandbox)";

    if (make_room(s, want))
        return 0;
    if (children_count(s->children, is_open, want->tenant) >= most->tenant_max)
        return err_set(e, ERR_LIMIT,
                       "%" PRIu64 " persistent sandboxes are in use, which is the most "
                       "(SANDBOX_PERSISTENT_MAX): %s",
                       most->tenant_max, way);
    return err_set(e, ERR_BUSY,
                   "the server has no room for another persistent sandbox of yours "
                   "(SANDBOX_PERSISTENT_SERVER): %s, or try again later",
                   way);
}

static int check_image(const struct spawner *s, const char *image, struct err *e)
{
    const char *engine_error = s->runners->engine_error;

    if (*engine_error)
        return err_set(e, ERR_UNAVAILABLE, "%s", engine_error);
    if (strlen(image) > PSANDBOX_IMAGE_MAX ||
        !engine_image_allowed(s->config->limits.persistent.images, image))
        return err_set(e, ERR_DENIED,
                       "image: this server does not allow it (SANDBOX_PERSISTENT_IMAGES)");
    return 0;
}

/* The conversation's session that was not given the call because of its network: the new one takes
 * its place. NULL: there is none. */
static struct child *find_session_before(const struct spawner *s, const struct want *want,
                                         const struct engine_runner *runner)
{
    struct child *before = want->session ? children_find_session(s->children, want->sandbox_dir,
                                                                 want->language, runner->image)
                                         : NULL;

    return before && child_is_idle_session(before) ? before : NULL;
}

static int psandbox_start_new(const struct spawner *s, int fd, const json_t *head,
                              const struct want *want, struct err *e)
{
    struct supervisor_start wanted = {
        .call = {.head = head, .connection = fd, .sandbox_dir = want->sandbox_dir}};
    struct child *child = NULL, *before = NULL;

    if (want->image && check_image(s, want->image, e) < 0)
        return -1;
    if (want->language && !(wanted.runner = runners_find(s->runners, want->language, e)))
        return -1;
    before = find_session_before(s, want, wanted.runner);
    if (!before && check_room(s, want, e) < 0)
        return -1;
    child = spawn_supervisor(s, CHILD_PSANDBOX, &wanted, e);
    if (!child)
        return -1;
    if (before)
        supervisors_end_one(before, before->session_network == NETWORK_NONE
                                        ? "it had no network, which this call wants"
                                        : "it had a network, which is not this call's");
    child_set_owner(child, want->tenant, want->conversation);
    child->session = want->session;
    child->session_network = wire_network(head);
    child->n_handed = want->session;
    child->used_us = clock_mono_us();
    return 0;
}

void psandboxes_begin(const struct broker *b, int take_fd, const json_t *head)
{
    const struct spawner *s = &b->spawner;
    struct err e = ERR_INIT;
    struct want want;

    if (want_decode(s, head, &want, &e) < 0 || psandbox_start_new(s, take_fd, head, &want, &e) < 0)
        reply_send_error(take_fd, &e);
    else
        close(take_fd);
}
