#include "config.h"

#include "common/broker/child_io.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/sock.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <string.h>

#define MESSAGE_MAX 4096

struct child_link {
    struct child_io *io;
    struct child_link *next;
    struct child *child;
    int fd;
    struct sock_inbox inbox;
    struct loop_watch watch;
    bool readable;
};

static void link_set_readable(struct child_io *io, struct child_link *link, bool readable)
{
    io->n_readable -= link->readable;
    io->n_readable += readable;
    link->readable = readable;
}

static void on_readable(void *owner, void *item, uint32_t events)
{
    struct child_link *link = item;

    (void)owner;
    (void)events;
    link_set_readable(link->io, link, true);
}

int child_io_open(struct child_io *io, struct child *child, int take_fd, struct err *e)
{
    struct child_link *link = mem_alloc(sizeof *link);

    *link = (struct child_link){.io = io,
                                .next = io->first,
                                .child = child,
                                .fd = take_fd,
                                .inbox = SOCK_INBOX_INIT(MESSAGE_MAX),
                                .watch = LOOP_WATCH_INIT};
    io->first = link;
    child->link = link;
    if (loop_add(io->loop, &link->watch, take_fd, EPOLLIN, on_readable, link, e) == 0)
        return 0;
    child_io_close(io, child);
    return -1;
}

void child_io_close(struct child_io *io, struct child *child)
{
    struct child_link *link = TAKE_PTR(child->link);
    struct child_link **at = &io->first;

    if (!link)
        return;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    link_set_readable(io, link, false);
    loop_remove(io->loop, &link->watch);
    auto_close_fd(&link->fd);
    sock_inbox_clear(&link->inbox);
    free(link);
}

void child_io_release(struct child_io *io, struct child *child)
{
    child_io_close(io, child);
    child_set_state(child, CHILD_ENDED);
}

/* ---- events ---- */

static const struct {
    const char *name;
    enum child_event_kind kind;
} messages[] = {
    {"waiting", CHILD_READY},   {"running", CHILD_TOOK_RUN}, {"started", CHILD_STARTED},
    {"doubted", CHILD_DOUBTED}, {"ended", CHILD_HAS_ENDED},  {"runs", CHILD_TELLS_RUNS},
};

/* false: the message says nothing that is known. */
static bool event_decode(const struct buf *text, struct child_event *out)
{
    struct err e = ERR_INIT;
    json_auto_t *message = wire_parse(text, &e);
    const char *is = message ? json_get_string(message, "is") : NULL;
    const char *tier = message ? json_get_string(message, "tier") : NULL;

    for (size_t i = 0; is && i < ARRAY_LEN(messages); i++) {
        if (strcmp(is, messages[i].name) != 0)
            continue;
        out->kind = messages[i].kind;
        out->tier = tier && strcmp(tier, "preloaded") == 0 ? ENGINE_TIER_PRELOADED
                                                           : ENGINE_TIER_STARTED;
        out->reusable = json_get_bool(message, "reusable", 0) != 0;
        if (out->kind == CHILD_TELLS_RUNS) /* the message goes */
            out->runs = json_incref(json_object_get(message, "runs"));
        out->n_dealt = (size_t)json_get_integer(message, "dealt", 0);
        out->ran_ms = json_get_integer(message, "ranMs", 0);
        out->memory_bytes = (uint64_t)json_get_integer(message, "memoryBytes", 0);
        return true;
    }
    return false;
}

bool child_io_next_of(struct child_io *io, struct child *child, struct child_event *out)
{
    struct child_link *link = child->link;
    struct err e = ERR_INIT;
    int whole = 0;

    *out = (struct child_event){.child = child, .kind = CHILD_LEFT};
    if (!link)
        return false;
    while ((whole = sock_inbox_take(&link->inbox, link->fd, &e)) > 0)
        if (event_decode(&link->inbox.message, out))
            return true;
    if (whole == 0)
        link_set_readable(io, link, false);
    else
        child_io_close(io, child);
    return whole < 0;
}

bool child_io_next(struct child_io *io, struct child_event *out)
{
    for (struct child_link *link = io->first, *next; io->n_readable > 0 && link; link = next) {
        next = link->next;
        if (link->readable && child_io_next_of(io, link->child, out))
            return true;
    }
    return false;
}

void child_io_poll(struct child_io *io)
{
    for (struct child_link *link = io->first; link; link = link->next)
        link_set_readable(io, link, true);
}

/* ---- orders ---- */

/* It drops the channel when it reads the part of a message, and comes back with another. */
static void cut(struct child_io *io, struct child *child, const struct err *why)
{
    log_info("%s does not take an order (%s); it must come back", child->run_id, why->text);
    child_io_close(io, child);
    child->reattaching = child->kind == CHILD_PSANDBOX;
    io->has_cut |= child->reattaching;
}

static int child_post(struct child *child, const json_t *message, int pass_fd, struct err *e)
{
    if (!child->link)
        return err_set(e, ERR_CANCELLED, "it has been released");
    if (wire_post(child->link->fd, message, pass_fd, e) == 0)
        return 0;
    if (e->kind != ERR_CANCELLED) /* else what it has sent before it left is still to be read */
        cut(child->link->io, child, e);
    return -1;
}

int child_io_hand(struct child *child, const struct handed_call *call, struct err *e)
{
    json_auto_t *message = wire_hand_new(call, child->run_id);

    return child_post(child, message, call->connection, e);
}

int child_io_end(struct child *child, const char *why, struct err *e)
{
    json_auto_t *message = json_pack("{s:s, s:s*}", "do", "end", "why", why);

    return child_post(child, message, -1, e);
}

int child_io_tell(struct child *child, const char *what, struct err *e)
{
    json_auto_t *message = json_pack("{s:s}", "do", what);

    return child_post(child, message, -1, e);
}
