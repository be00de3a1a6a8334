#include "config.h"

#include "common/broker/host_watch.h"
#include "common/broker/housekeeper.h"
#include "common/broker/limits_probe.h"
#include "common/broker/network_probe.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/remedy.h"
#include "common/fetch/site.h"
#include "common/protocol/client_files.h"
#include "common/protocol/wire.h"
#include "common/records/kept_runs.h"
#include "common/records/psandbox_record.h"
#include "common/records/run_lock.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/staging.h"
#include "common/sandbox/links/upload.h"
#include "common/sandbox/stand_in.h"
#include "common/sandbox/warm_dir.h"
#include "common/scheduler/runners.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* Between sweeps for orphans. The broker asks for one when a supervisor died; what remains is a
 * container whose time is over while its supervisor hangs, and no time is shorter than this: the
 * engine's own for a start is part of it. */
#define SWEEP_MS      30000
#define SWEEP_SOON_MS 2000  /* after a sweep that failed, and at the least */
#define RETRY_MS      1000  /* until an engine that is away is called again */
#define HOST_MS       5000  /* between looks at disk, root and clock */
#define HOMES_MS      1000  /* between looks at homes that are away */
#define REMOVE_MS     20000 /* for the files of a conversation to be removed */
#define SETTLE_MS     200   /* image events come in bunches */

/* Between tests of the networks: rules may be taken away, an engine's network be removed. */
#define NETWORK_MS      600000
#define NETWORK_SOON_MS 20000 /* while one is refused */

/* Between trials of limits that do not hold; of which nothing is known, at first, and how often
 * that doubles. */
#define LIMITS_MS           600000
#define LIMITS_SOON_MS      2000
#define LIMITS_SOON_DOUBLES 8

/* ---- the process ---- */

/* What it does from time to time, in this order when several are due. */
enum chore {
    LIST_RUNNERS, /* never due: the list is fresh */
    SWEEP,
    LOOK_AT_HOST,
    TEST_NETWORKS,
    TEST_LIMITS,
    LOOK_AT_HOMES, /* of conversations for which this node stands in */
    CHORES
};

struct housekeeper {
    const struct spawner *spawner;
    const struct broker_config *config;
    const struct sandbox_root *root;
    int broker_fd;
    struct engine *engine;
    int watch_fd; /* the engine's image events; -1: not connected */
    struct deadline due[CHORES];
    int64_t next_over; /* Unix time when the next container's time is over, of the last sweep */
    struct engine_runners runners; /* of the latest list */
    bool engine_is_lost, none_is_told, has_swept;
    struct host_watch host;
    struct site_watch site;
    char *image;           /* of a runner, for the tests of networks; NULL: there is none */
    unsigned limits_tries; /* without a verdict, since the engine came */
    char limits_error[sizeof((struct err *)0)->text];                 /* as logged */
    char network_error[NETWORK_TIERS][sizeof((struct err *)0)->text]; /* as logged */
};

static void housekeeper_send(const struct housekeeper *k, json_t *take_message)
{
    struct err e = ERR_INIT;
    if (wire_send(k->broker_fd, take_message, -1, &e) < 0)
        log_debug("the broker is gone: %s", e.text);
    json_decref(take_message);
}

/* The engine is away: logged once, and asked again soon. */
static void engine_lost(struct housekeeper *k, const struct err *e)
{
    if (!k->engine_is_lost)
        log_warn("engine: %s%s%s", e->text, e->kind == ERR_UNAVAILABLE ? "; " : "",
                 e->kind == ERR_UNAVAILABLE
                     ? remedy(e->sys == EACCES ? REMEDY_ENGINE_OPEN : REMEDY_ENGINE)
                     : "");
    k->engine_is_lost = true;
    k->watch_fd = -1;
    k->due[LIST_RUNNERS] = deadline_in_ms(RETRY_MS);
    housekeeper_send(k, json_pack("{s:o, s:i}", "engineError",
                                  json_from_bytes(e->text, strlen(e->text)), "errno", e->sys));
}

/* Calls of its language are refused from now on. */
static void tell_gone(const struct engine_runners *before, const struct engine_runners *now)
{
    for (size_t i = 0; i < before->n; i++)
        if (!engine_runners_find(now, before->items[i].language))
            log_warn("runners: the image %s has gone, and nothing runs %s now; %s",
                     before->items[i].image, before->items[i].language, remedy(REMEDY_RUNNERS));
}

static void list_runners(struct housekeeper *k)
{
    struct err e = ERR_INIT;
    struct engine_runners runners = {0};

    /* Watch first, list second: what changes in between is seen by the watch. */
    if (k->watch_fd < 0)
        k->watch_fd = k->engine->ops->watch(k->engine, &e);
    if (k->watch_fd < 0 ||
        k->engine->ops->runners(k->engine, k->config->allow_images, &runners, &e) < 0) {
        engine_lost(k, &e);
        return;
    }
    k->due[LIST_RUNNERS] = DEADLINE_NEVER;
    if (k->engine_is_lost || (!k->image && runners.n > 0)) {
        k->due[TEST_NETWORKS] = k->due[TEST_LIMITS] = deadline_in_ms(0);
        k->limits_tries = 0;
    }
    free(k->image);
    k->image = runners.n > 0 ? mem_strdup(runners.items[0].image_id) : NULL;
    if (k->engine_is_lost)
        log_info("engine: it answers again");
    if (k->engine_is_lost)
        k->due[SWEEP] = deadline_in_ms(0); /* an engine that was away may have kept containers */
    k->engine_is_lost = false;
    if (runners.n > 0)
        log_info("runners: %zu images", runners.n);
    else if (!k->none_is_told)
        log_warn("runners: there is no image that SANDBOX_IMAGES=%s allows, and nothing can be "
                 "run; %s",
                 k->config->allow_images, remedy(REMEDY_RUNNERS));
    k->none_is_told = runners.n == 0;
    const struct engine_facts *facts = k->engine->ops->facts(k->engine);
    housekeeper_send(k, json_pack("{s:o, s:s, s:b, s:b}", "runners", runners_encode(&runners),
                                  "version", facts->version, "podman", facts->podman, "rootless",
                                  facts->rootless));
    tell_gone(&k->runners, &runners);
    engine_runners_clear(&k->runners);
    k->runners = runners;
}

static void look_at_host(struct housekeeper *k)
{
    host_watch_look(&k->host, k->root, k->config->web_gid);
    k->due[LOOK_AT_HOST] = deadline_in_ms(HOST_MS);
}

static void report_network(struct housekeeper *k, enum network_tier tier, const char *error)
{
    bool changed = strcmp(k->network_error[tier], error) != 0;

    snprintf(k->network_error[tier], sizeof k->network_error[tier], "%s", error);
    if (changed && *error)
        log_warn("network %s: refused: %s; %s", network_name(tier), error, remedy(REMEDY_NETWORK));
    else if (changed)
        log_info("network %s: tested from inside a container, allowed", network_name(tier));
    housekeeper_send(k, json_pack("{s:i, s:o}", "network", tier, "error",
                                  json_from_bytes(error, strlen(error))));
}

static void test_networks(struct housekeeper *k)
{
    bool all = true;

    for (enum network_tier tier = k->config->limits.network; tier > NETWORK_NONE; tier--) {
        struct err e = ERR_INIT;

        if (!k->image)
            err_set(&e, ERR_NOT_FOUND, "there is no runner image to test it with");
        else
            network_probe(k->spawner, k->image, tier, &e);
        all = all && e.kind == ERR_NONE;
        report_network(k, tier, e.kind == ERR_NONE ? "" : e.text);
    }
    k->due[TEST_NETWORKS] = deadline_in_ms(all ? NETWORK_MS : NETWORK_SOON_MS);
}

static void report_limits(struct housekeeper *k, enum limits_verdict verdict, const char *error)
{
    if (verdict == LIMITS_HOLD)
        log_info("limits: tested from inside a container: memory and processes are bounded");
    else if (strcmp(k->limits_error, error) != 0)
        log_warn("limits: %s", error);
    snprintf(k->limits_error, sizeof k->limits_error, "%s", error);
    housekeeper_send(k, json_pack("{s:i, s:o}", "limits", verdict, "error",
                                  json_from_bytes(error, strlen(error))));
}

/* A trial that fails says nothing about the limits: it is made again, with another image, until
 * there is a verdict. Limits that do not hold are tried again, too: they may have been mended. */
static void test_limits(struct housekeeper *k)
{
    struct err e = ERR_INIT;
    unsigned tries = k->limits_tries;

    k->due[TEST_LIMITS] = DEADLINE_NEVER;
    if (k->engine_is_lost || k->runners.n == 0 || k->config->limits_check == LIMITS_TRUST)
        return;
    const char *image = k->runners.items[tries % k->runners.n].image_id;
    const enum limits_verdict verdict = limits_probe(k->spawner, image, &e);
    if (verdict == LIMITS_FAIL)
        k->due[TEST_LIMITS] = deadline_in_ms(LIMITS_MS);
    if (verdict == LIMITS_UNKNOWN) {
        err_wrap(&e, "the engine's limits could not be tested");
        k->due[TEST_LIMITS] = deadline_in_ms(
            (int64_t)LIMITS_SOON_MS << (tries < LIMITS_SOON_DOUBLES ? tries : LIMITS_SOON_DOUBLES));
        k->limits_tries++;
    }
    report_limits(k, verdict, e.text);
}

static bool is_orphan(void *ctx, const char *run_id, int64_t deadline_unix)
{
    struct housekeeper *k = ctx;
    if (deadline_unix < k->next_over)
        k->next_over = deadline_unix;
    return clock_unix_s() > deadline_unix || !run_lock_reap(k->root->fd, run_id);
}

void housekeeper_sweep_files(const struct sandbox_root *root, int64_t now)
{
    run_lock_sweep(root->fd);
    kept_runs_sweep(root, now);
    psandbox_record_sweep(root, now);
    index_dir_sweep(root->fd);
    warm_dir_sweep(root, WARM_DIR_LEFT_OVER_S);
    staging_sweep(root, now);
    uploads_sweep(root);
}

static void sweep(struct housekeeper *k)
{
    struct err e = ERR_INIT;

    k->due[SWEEP] = DEADLINE_NEVER;
    if (k->engine_is_lost) /* list_runners has one made when the engine is back */
        return;
    k->next_over = INT64_MAX;
    int removed = k->engine->ops->reap(k->engine, k->config->instance, is_orphan, k, &e);
    if (removed < 0)
        log_debug("sweep: %s", e.text);
    if (removed > 0 && k->has_swept)
        log_warn("containers without a supervisor, removed: %d", removed);
    else if (removed > 0) /* a reload leaves some, whose start it has ended */
        log_info("containers of the processes before, removed: %d", removed);
    k->has_swept = true;
    housekeeper_sweep_files(k->root, clock_unix_s());
    int64_t over_in_s = k->next_over - clock_unix_s() + 1;
    k->due[SWEEP] = deadline_in_ms(removed < 0 || over_in_s < SWEEP_SOON_MS / 1000 ? SWEEP_SOON_MS
                                   : over_in_s < SWEEP_MS / 1000 ? over_in_s * 1000
                                                                 : SWEEP_MS);
}

/* The broker asked for a sweep, or has gone (false). */
static bool on_broker_message(struct housekeeper *k)
{
    struct err e = ERR_INIT;
    json_auto_t *message = wire_recv(k->broker_fd, NULL, deadline_in_ms(1000), &e);

    k->due[SWEEP] = deadline_in_ms(0);
    return message != NULL;
}

/* ---- conversations whose homes are away ---- */

static bool remove_stand_in(void *ctx, const char *tenant, const char *inside)
{
    const struct housekeeper *k = ctx;
    const struct broker_client client = {.path = k->config->path,
                                         .tenant = tenant,
                                         .cancel_fd = -1,
                                         .leave_fd = -1,
                                         .limit_ms = REMOVE_MS};
    struct err e = ERR_INIT;
    json_auto_t *gone = broker_delete_conversation(&client, inside, &e);

    return gone || e.kind == ERR_NOT_FOUND;
}

static void look_at_homes(struct housekeeper *k)
{
    AUTO_FD int sessions = openat(k->root->fd, SESSIONS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (sessions >= 0)
        stand_ins_look(sessions, remove_stand_in, k);
    k->due[LOOK_AT_HOMES] = deadline_in_ms(HOMES_MS);
}

static void (*const chores[CHORES])(struct housekeeper *k) = {
    [LIST_RUNNERS] = list_runners, [SWEEP] = sweep,
    [LOOK_AT_HOST] = look_at_host, [TEST_NETWORKS] = test_networks,
    [TEST_LIMITS] = test_limits,   [LOOK_AT_HOMES] = look_at_homes,
};

static bool housekeeper_tick(struct housekeeper *k)
{
    struct pollfd p[] = {{.fd = k->broker_fd, .events = POLLIN},
                         {.fd = k->watch_fd, .events = POLLIN},
                         {.fd = k->site.fd, .events = POLLIN}};
    struct deadline next = k->site.due;

    for (size_t i = 0; i < CHORES; i++)
        next = deadline_min(next, k->due[i]);
    if (poll(p, ARRAY_LEN(p), deadline_poll_ms(next)) < 0 && errno != EINTR)
        return false;
    if (p[0].revents && !on_broker_message(k))
        return false;
    if (p[1].revents) {
        if (!k->engine->ops->watch_drain(k->engine))
            k->watch_fd = -1;
        k->due[LIST_RUNNERS] = deadline_min(k->due[LIST_RUNNERS], deadline_in_ms(SETTLE_MS));
    }
    if (p[2].revents || deadline_passed(k->site.due))
        site_watch_go_on(&k->site, k->config->base_url);
    for (size_t i = 0; i < CHORES; i++)
        if (deadline_passed(k->due[i]))
            chores[i](k);
    return true;
}

void housekeeper_main(void *ctx, int fd)
{
    const struct spawner *spawner = ((const struct housekeeper_link *)ctx)->spawner;
    struct err e = ERR_INIT;
    const struct deadline now = deadline_in_ms(0);
    struct housekeeper k = {
        .spawner = spawner,
        .config = spawner->config,
        .root = spawner->root,
        .broker_fd = fd,
        .watch_fd = -1,
        .due = {[LIST_RUNNERS] = now,
                [SWEEP] = now,
                [LOOK_AT_HOST] = now,
                [TEST_NETWORKS] = DEADLINE_NEVER, /* list_runners finds an image for them */
                [TEST_LIMITS] = DEADLINE_NEVER,
                [LOOK_AT_HOMES] = spawner->config->is_node ? now : DEADLINE_NEVER},
        .site = {.due = DEADLINE_NEVER, .fd = -1},
        .network_error = {"?", "?", "?"}}; /* nothing is logged yet */
    k.engine = docker_engine_new(&spawner->config->engine, &e);
    if (!k.engine) {
        log_error("engine: %s", e.text);
        return;
    }
    if (spawner->config->watch_site)
        site_watch_init(&k.site);
    while (housekeeper_tick(&k))
        ;
    site_watch_clear(&k.site);
    k.engine->ops->free(k.engine);
    engine_runners_clear(&k.runners);
    free(k.image);
}
