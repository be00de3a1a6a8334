#include "config.h"

#include "common/supervisor/container.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/metrics.h"
#include "common/records/run_lock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRAIN_MS       (3 * WAITER_TIMEOUT_MS)
#define COUNT_MS       1000 /* between readings of what a container uses */
#define EVENTS_AT_ONCE 256  /* of the engine; then the loop looks at the others */

/* ---- processor time ---- */

static void count_cpu(struct container *c)
{
    uint64_t us = c->started && metrics_are_counted() ? c->engine->ops->cpu_us(c->engine) : 0;

    if (us > c->cpu_us) {
        purpose_add_cpu(c->purpose, us - c->cpu_us);
        c->cpu_us = us;
    }
    purpose_count();
    c->count_at = deadline_in_ms(COUNT_MS);
}

void container_use_for(struct container *c, enum purpose purpose)
{
    count_cpu(c);
    c->purpose = purpose;
}

/* ---- the loop ---- */

static void container_tend(struct container *c)
{
    if (deadline_passed(c->count_at))
        count_cpu(c);
    channel_ring_at(&c->channel, c->ops->tend(c));
}

bool container_tick(void *owner)
{
    struct container *c = owner;

    channel_dispatch(&c->channel);
    container_tend(c);
    return !c->stop;
}

static void container_lose(struct container *c, const struct err *e)
{
    c->started = false;
    c->ops->on_gone(c, e);
}

void container_read(struct container *c)
{
    struct engine_event ev;
    struct err e = ERR_INIT;
    bool more = true;

    for (int i = 0; more && i < EVENTS_AT_ONCE; i++)
        more = c->engine->ops->read(c->engine, &ev, &e) == 0 && ev.kind != ENGINE_EVENT_NOTHING &&
               c->ops->on_event(c, &ev);
    c->unread = more;
    if (e.kind != ERR_NONE)
        container_lose(c, &e);
}

void container_turn(struct container *c, struct deadline until)
{
    const struct engine_ops *ops = c->engine->ops;
    struct pollfd p[2] = {
        {.fd = c->channel.loop.fd, .events = POLLIN},
        {.fd = c->started ? ops->fd(c->engine) : -1, .events = ops->waits(c->engine)}};
    struct err e = ERR_INIT;

    if (poll(p, 2, c->unread ? 0 : deadline_poll_ms(until)) < 0) {
        p[0].revents = p[1].revents = 0;
        if (errno != EINTR) {
            err_errno(&e, "poll");
            container_lose(c, &e);
        }
    }
    if (p[0].revents)
        channel_dispatch(&c->channel);
    if (p[1].revents || c->unread)
        container_read(c);
    container_tend(c);
}

void container_drain(struct container *c)
{
    struct deadline end = deadline_in_ms(DRAIN_MS);

    container_tick(c);
    while (c->waiters.n > 0 && !deadline_passed(end))
        container_turn(c, end);
    waiters_clear(&c->waiters);
}

/* ---- the container ---- */

bool container_open(struct container *c, const struct supervisor_start *start,
                    const struct container_ops *ops)
{
    struct engine_address address = start->config->engine;
    struct err e = ERR_INIT;

    address.facts = start->facts;
    *c = (struct container){.start = start, .ops = ops, .lock_fd = -1};
    waiters_init(&c->waiters, &c->channel.loop, ops->on_waiter);
    if (channel_open(&c->channel, start->channel, &ops->channel, c, &e) == 0)
        c->lock_fd = run_lock_take(start->root->fd, start->container_id, &e);
    c->channel.broker_path = start->config->path;
    c->channel.run_id = start->container_id;
    c->channel.head = start->call.head;
    c->attend = (struct engine_attend){.fd = c->channel.loop.fd, .tick = container_tick, .ctx = c};
    c->engine = c->lock_fd < 0 ? NULL : docker_engine_new(&address, &e);
    if (c->engine)
        return true;
    log_error("a supervisor cannot start: %s", e.text);
    if (start->call.connection >= 0)
        waiter_refuse(start->call.connection, &e);
    container_clear(c);
    return false;
}

void container_clear(struct container *c)
{
    disk_watch_end(&c->disk);
    if (c->engine)
        c->engine->ops->free(c->engine);
    waiters_clear(&c->waiters);
    channel_clear(&c->channel);
    if (c->lock_fd >= 0)
        run_lock_remove(c->start->root->fd, c->start->container_id);
    auto_close_fd(&c->lock_fd);
}

int container_start(struct container *c, struct sandbox_owner owner, struct engine_spec *spec,
                    struct err *e)
{
    const struct supervisor_start *start = c->start;
    const struct broker_config *config = start->config;
    char user[48];

    if (owner.uid == 0 || owner.gid == 0)
        return err_set(e, ERR_INTERNAL, "a container's directory belongs to root");
    snprintf(user, sizeof user, "%u:%u", owner.uid, owner.gid);
    spec->image_name = start->runner ? start->runner->image : spec->image;
    if (start->runner)
        spec->image = start->runner->image_id;
    spec->user = user;
    spec->helpers_path = start->helpers_path;
    spec->instance = config->instance;
    spec->run_id = start->container_id;
    spec->runtime = config->runtime;
    spec->limits = config->container;
    if (spec->network == NETWORK_PUBLIC)
        spec->dns = config->network_dns;
    c->cpu_us = 0;
    c->purpose = spec->psandbox ? PURPOSE_SANDBOX : PURPOSE_START;
    c->started = c->engine->ops->start(c->engine, spec, &c->attend,
                                       deadline_in_ms(CONTAINER_START_MS), e) == 0;
    return c->started ? 0 : -1;
}

void container_finish(struct container *c)
{
    count_cpu(c);
    c->started = c->unread = false;
    c->engine->ops->finish(c->engine);
}

static bool is_same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

bool container_may_serve(const struct container_use *it, const struct container_use *wanted)
{
    const struct stat *a = &it->dir, *b = &wanted->dir;

    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_uid == b->st_uid &&
           a->st_gid == b->st_gid && is_same(it->image_id, wanted->image_id) &&
           (!it->tenant || (is_same(it->tenant, wanted->tenant) &&
                            is_same(it->conversation, wanted->conversation)));
}

void container_use_clear(struct container_use *use)
{
    free(use->tenant);
    free(use->conversation);
    *use = (struct container_use){0};
}

void container_log_failure(const struct container *c, const char *what, const char *id,
                           const struct err *e)
{
    const struct supervisor_start *start = c->start;

    if (e->kind == ERR_IO || e->kind == ERR_INTERNAL || e->kind == ERR_UNAVAILABLE ||
        e->kind == ERR_REFUSED || e->kind == ERR_LOST || e->kind == ERR_NOT_FOUND)
        log_warn("%s %s image=%s: %s", what, id, start->runner ? start->runner->image : "-",
                 e->text);
}
