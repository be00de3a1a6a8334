#include "config.h"

#include "common/supervisor/container.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/protocol/wire.h"
#include "common/records/run_lock.h"
#include "common/rpc/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#define ENV_NAME_MAX 128
#define REDIAL_MS    200
#define MESSAGE_MS   1000 /* for the rest of a message whose beginning is there */

/* ---- the channel ---- */

void channel_send(const struct channel *c, json_t *take_message)
{
    struct err e = ERR_INIT;
    json_auto_t *message = take_message;

    if (c->fd >= 0 && wire_post(c->fd, message, -1, &e) < 0)
        log_debug("cannot send to the broker: %s", e.text);
}

static void channel_handle(struct channel *c, const json_t *message, int take_fd)
{
    AUTO_FD int connection = take_fd;
    const char *name = json_get_string(message, "do");

    for (const struct channel_handler *h = c->ops->handlers; name && h->name; h++)
        if (strcmp(name, h->name) == 0 && h->with_connection == (connection >= 0)) {
            h->handle(c->loop.owner, message, TAKE_FD(connection));
            return;
        }
}

static void channel_receive(struct channel *c)
{
    struct err e = ERR_INIT;
    int connection = -1;
    json_auto_t *message = wire_recv(c->fd, &connection, deadline_in_ms(MESSAGE_MS), &e);

    if (message) {
        channel_handle(c, message, connection);
        return;
    }
    loop_remove(&c->loop, &c->watch);
    auto_close_fd(&c->fd);
    if (c->ops->on_lost(c->loop.owner))
        c->redial = deadline_in_ms(REDIAL_MS);
}

static void channel_on_ready(void *owner, void *item, uint32_t events)
{
    (void)owner;
    (void)events;
    channel_receive(item);
}

void channel_close(struct channel *c)
{
    if (c->fd < 0)
        return;
    shutdown(c->fd, SHUT_RD); /* a sender gets EPIPE from now on, and serves the call elsewhere */
    while (c->fd >= 0)
        channel_receive(c);
}

/* ---- the next main process ---- */

static int channel_adopt(struct channel *c, struct err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    json_auto_t *head = c->ops->adopt_head(c->loop.owner);

    snprintf(a.sun_path, sizeof a.sun_path, "%s", c->broker_path);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof a) < 0)
        return err_errno(e, "%s", c->broker_path);
    if (wire_post(fd, head, -1, e) < 0 ||
        loop_add(&c->loop, &c->watch, fd, EPOLLIN, channel_on_ready, c, e) < 0)
        return -1;
    c->fd = TAKE_FD(fd);
    return 0;
}

/* ---- the loop ---- */

void channel_ring_at(struct channel *c, struct deadline d)
{
    d = deadline_min(d, c->redial);
    if (d.at_ms == c->alarm.at_ms || (d.at_ms < 0 && c->alarm.at_ms < 0))
        return;
    /* A time of zero would disarm the timer. */
    struct itimerspec when = {
        .it_value = {.tv_sec = d.at_ms / 1000, .tv_nsec = d.at_ms % 1000 * 1000000 + 1}};
    if (d.at_ms < 0)
        when = (struct itimerspec){0};
    timerfd_settime(c->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
    c->alarm = d;
}

static void channel_on_timer(void *owner, void *item, uint32_t events)
{
    struct channel *c = item;
    uint64_t times;

    (void)owner;
    (void)events;
    if (read(c->timer_fd, &times, sizeof times) > 0)
        c->alarm = DEADLINE_NEVER;
}

void channel_dispatch(struct channel *c)
{
    struct err e = ERR_INIT;

    if (loop_dispatch(&c->loop, &e) < 0)
        log_error("a supervisor's events: %s", e.text);
    if (!deadline_passed(c->redial))
        return;
    c->redial = channel_adopt(c, &e) < 0 ? deadline_in_ms(REDIAL_MS) : DEADLINE_NEVER;
}

static int channel_open(struct channel *c, int take_fd, const struct channel_ops *ops, void *owner,
                        struct err *e)
{
    *c = (struct channel){.loop = LOOP_INIT,
                          .fd = take_fd,
                          .watch = LOOP_WATCH_INIT,
                          .timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                          .timer_watch = LOOP_WATCH_INIT,
                          .alarm = DEADLINE_NEVER,
                          .redial = DEADLINE_NEVER,
                          .ops = ops};
    if (c->timer_fd < 0)
        return err_errno(e, "timerfd_create");
    if (loop_init(&c->loop, owner, e) < 0 ||
        loop_add(&c->loop, &c->timer_watch, c->timer_fd, EPOLLIN, channel_on_timer, c, e) < 0)
        return -1;
    return loop_add(&c->loop, &c->watch, c->fd, EPOLLIN, channel_on_ready, c, e);
}

/* ---- the container ---- */

bool container_open(struct container *c, const struct supervisor_start *start, void *owner,
                    const struct channel_ops *ops, loop_handler *ready, bool (*tick)(void *owner))
{
    struct engine_address address = start->config->engine;
    struct err e = ERR_INIT;

    address.version = start->version;
    *c = (struct container){.start = start, .lock_fd = -1};
    waiters_init(&c->waiters, &c->channel.loop, ready);
    if (channel_open(&c->channel, start->channel, ops, owner, &e) == 0)
        c->lock_fd = run_lock_take(start->root->fd, start->container_id, &e);
    c->channel.broker_path = start->config->path;
    c->attend = (struct engine_attend){.fd = c->channel.loop.fd, .tick = tick, .ctx = owner};
    c->engine = c->lock_fd < 0 ? NULL : docker_engine_new(&address, &e);
    if (c->engine)
        return true;
    log_error("a supervisor cannot start: %s", e.text);
    if (start->connection >= 0)
        waiter_refuse(start->connection, &e);
    container_clear(c);
    return false;
}

void container_clear(struct container *c)
{
    disk_watch_end(&c->disk);
    if (c->engine)
        c->engine->ops->free(c->engine);
    waiters_clear(&c->waiters);
    loop_clear(&c->channel.loop);
    auto_close_fd(&c->channel.timer_fd);
    auto_close_fd(&c->channel.fd);
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
    spec->instance = config->instance;
    spec->run_id = start->container_id;
    spec->runtime = config->runtime;
    spec->limits = config->container;
    if (spec->network == NETWORK_PUBLIC)
        spec->dns = config->network_dns;
    return c->engine->ops->start(c->engine, spec, &c->attend, deadline_in_ms(CONTAINER_START_MS),
                                 e);
}

static bool is_same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

bool container_may_serve(const struct container_use *it, const struct container_use *wanted)
{
    return it->dev == wanted->dev && it->ino == wanted->ino && it->uid == wanted->uid &&
           it->gid == wanted->gid && is_same(it->language, wanted->language) &&
           is_same(it->image_id, wanted->image_id) &&
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
        log_warn("%s %s language=%s: %s", what, id, start->runner ? start->runner->language : "-",
                 e->text);
}

int container_check_size(const char *field, uint64_t len, uint64_t max, struct err *e)
{
    if (len > max)
        return err_set(e, ERR_LIMIT, "%s is %" PRIu64 " bytes; the limit is %" PRIu64, field, len,
                       max);
    return 0;
}

int container_check_request(const struct supervisor_start *start, struct run_request *r,
                            struct err *e)
{
    const struct broker_limits *limits = &start->config->limits;
    uint64_t env = 0;

    for (size_t i = 0; i < r->n_env; i++) {
        size_t name = strlen(r->env[i].name);
        if (name > ENV_NAME_MAX)
            return err_set(e, ERR_LIMIT, "environment: a name is over %d bytes", ENV_NAME_MAX);
        env += name + strlen(r->env[i].value);
    }
    if (container_check_size("code", r->code.len, limits->code_max, e) < 0 ||
        container_check_size("stdin", r->input.len, limits->stdin_max, e) < 0 ||
        container_check_size("environment", env, limits->env_max, e) < 0)
        return -1;
    if (r->timeout_ms > limits->timeout_max_ms)
        return err_set(e, ERR_LIMIT, "timeoutMs is %" PRIu64 "; the limit is %" PRIu64,
                       r->timeout_ms, limits->timeout_max_ms);
    if (r->timeout_ms == 0)
        r->timeout_ms = limits->timeout_ms;
    return 0;
}

struct container_env container_env_new(const struct run_request *r, const struct sandbox *sandbox,
                                       const char *index_url)
{
    struct container_env env = {.items = mem_array(r->n_env + 2, sizeof *env.items)};

    for (size_t i = 0; i < r->n_env; i++)
        if (strcmp(r->env[i].name, "FILE_BASE_URL") != 0)
            env.items[env.n++] = mem_printf("%s=%s", r->env[i].name, r->env[i].value);
    AUTO_FREE char *url = sandbox_url(sandbox);
    env.items[env.n++] = mem_printf("FILE_BASE_URL=%s", url);
    if (index_url)
        env.items[env.n++] = mem_printf("SANDBOX_INDEX_URL=%s", index_url);
    return env;
}

void container_env_clear(struct container_env *env)
{
    for (size_t i = 0; i < env->n; i++)
        free((char *)(uintptr_t)env->items[i]);
    free(env->items);
}
