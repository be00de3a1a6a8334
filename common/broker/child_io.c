#include "config.h"

#include "common/base/log.h"
#include "common/broker/broker.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* ---- what they say ---- */

static void is_waiting(struct broker *b, struct child *child, const json_t *message)
{
    const char *tier = json_get_string(message, "tier");
    child->tier = tier && strcmp(tier, "full") == 0 ? ENGINE_TIER_FULL : ENGINE_TIER_LIGHT;
    child->memory_bytes = (uint64_t)json_get_integer(message, "memoryBytes", 0);
    pool_note_warm(b->pool, child);
    if (child->state == CHILD_STARTING)
        child_set_state(child, CHILD_WAITING);
}

static void is_running(struct broker *b, struct child *child, const json_t *message)
{
    (void)message;
    if (child->state == CHILD_WAITING)
        child_set_state(child, CHILD_RUNNING);
    run_queue_begun(b, child);
}

static void is_started(struct broker *b, struct child *child, const json_t *message)
{
    (void)b;
    (void)message;
    if (child->state == CHILD_STARTING)
        child_set_state(child, CHILD_RUNNING);
}

static void is_ended(struct broker *b, struct child *child, const json_t *message)
{
    (void)message;
    child_set_state(child, CHILD_ENDED);
    run_queue_begun(b, child);
    run_queue_release(b, child);
    if (child->kind == CHILD_SUPERVISOR)
        pool_note_end(b->pool, child, clock_mono_ms());
}

static const struct {
    const char *name;
    void (*take)(struct broker *b, struct child *child, const json_t *message);
} words[] = {
    {"waiting", is_waiting},
    {"running", is_running},
    {"started", is_started},
    {"ended", is_ended},
};

static void take_word(struct broker *b, struct child *child)
{
    struct err e = ERR_INIT;
    json_auto_t *message = wire_parse(&child->inbox.message, &e);
    const char *is = message ? json_get_string(message, "is") : NULL;
    for (size_t i = 0; is && i < ARRAY_LEN(words); i++)
        if (strcmp(is, words[i].name) == 0)
            words[i].take(b, child, message);
}

/* Everything it has said; false: its end of the channel is closed. */
static bool listen_to(struct broker *b, struct child *child)
{
    struct err e = ERR_INIT;
    int whole = 0;
    while (child->channel >= 0 && (whole = sock_inbox_take(&child->inbox, child->channel, &e)) > 0)
        take_word(b, child);
    return child->channel >= 0 && whole == 0;
}

static void close_channel(struct broker *b, struct child *child)
{
    loop_remove(&b->loop, &child->watch);
    auto_close_fd(&child->channel);
}

static void hear(void *owner, void *item, uint32_t events)
{
    struct broker *b = owner;
    struct child *child = item;
    (void)events;
    if (listen_to(b, child))
        return;
    if (child->pid == 0)
        child_io_reap(b, child, 0);
    else
        close_channel(b, child); /* its death is noticed by SIGCHLD */
}

void child_io_catch_up(struct broker *b, enum child_kind kind)
{
    for (struct child *c = NULL, *next = children_next(b->children, NULL); (c = next);) {
        next = children_next(b->children, c);
        if (c->kind == kind && c->channel >= 0)
            hear(b, c, 0);
    }
}

void child_io_watch(struct broker *b, struct child *child)
{
    struct err e = ERR_INIT;
    if (loop_add(&b->loop, &child->watch, child->channel, EPOLLIN, hear, child, &e) < 0) {
        log_error("%s", e.text);
        close_channel(b, child);
    }
}

/* ---- their end ---- */

void child_io_release(struct broker *b, struct child *child)
{
    close_channel(b, child);
    child_set_state(child, CHILD_ENDED);
}

void child_io_reap(struct broker *b, struct child *child, int status)
{
    listen_to(b, child); /* its last words */
    bool over = child->state == CHILD_ENDED;
    if (WIFSIGNALED(status))
        log_error("run %s: its supervisor was ended by signal %d", child->run_id, WTERMSIG(status));
    if (WIFSIGNALED(status) || !over) /* it may have left its container */
        housekeeper_link_ask_sweep(b);
    if (!over && child->kind == CHILD_SUPERVISOR && !child->claimed && !b->stopping)
        pool_note_failed_start(b->pool, child->language, clock_mono_ms());
    if (!run_queue_child_lost(b, child))
        run_queue_release(b, child);
    if (child->warm_dir[0])
        warm_dir_remove(&b->root, child->warm_dir); /* unless it has become a sandbox */
    close_channel(b, child);
    children_remove(b->children, child);
}

/* ---- runs that go on ---- */

bool child_io_hand(struct broker *b, int fd, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *run_id = json_get_string(head, "runId");
    struct err e = ERR_INIT;
    if (!tenant || !run_id)
        return false;
    struct child *child = children_find_run(b->children, tenant, run_id);
    /* Of one that has ended there is a record, if any. */
    return child && child->state != CHILD_ENDED && child_hand(child, "hand", head, 0, fd, &e) == 0;
}

bool child_io_come_from_us(int fd)
{
    struct err e = ERR_INIT;
    uid_t uid;
    return sock_peer(fd, &uid, NULL, &e) == 0 && uid == geteuid();
}

/* What it says about itself; -1: that is not complete. */
static int describe(struct broker *b, struct child *child, const json_t *head)
{
    const char *run_id = json_get_string(head, "runId");
    const char *tenant = json_get_string(head, "tenant");
    const char *conversation = json_get_string(head, "conversationId");
    const char *language = json_get_string(head, "language");
    const char *state = json_get_string(head, "state");
    struct err e = ERR_INIT;
    if (!run_id || strlen(run_id) != RUN_ID_LEN || !tenant || !conversation || !language ||
        !state || sandbox_name(&b->root, tenant, conversation, child->sandbox_dir, &e) < 0)
        return -1;
    memcpy(child->run_id, run_id, sizeof child->run_id);
    snprintf(child->language, sizeof child->language, "%s", language);
    child_set_owner(child, tenant, conversation);
    child->background = json_get_bool(head, "background", 0);
    child->network = json_get_bool(head, "network", 0);
    child->claimed = true;
    child_set_state(child, strcmp(state, "ended") == 0 ? CHILD_ENDED : CHILD_RUNNING);
    return 0;
}

void child_io_adopt(struct broker *b, int take_fd, const json_t *head)
{
    AUTO_FD int fd = take_fd;
    if (!child_io_come_from_us(fd)) {
        log_warn("refused a supervisor of another user");
        return;
    }
    struct child *child = children_add(b->children, CHILD_SUPERVISOR);
    if (describe(b, child, head) < 0) {
        log_warn("a supervisor did not say which run it has");
        children_remove(b->children, child);
        return;
    }
    log_info("run %s goes on; it began under another broker", child->run_id);
    child->channel = TAKE_FD(fd);
    if (child->state == CHILD_RUNNING) {
        child->placed = true;
        admission_adopt(b->admission, child->tenant, child->sandbox_dir, child->background);
    }
    child_io_watch(b, child);
}
