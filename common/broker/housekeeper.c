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
#define RETRY_MS      1000  /* until an engine that is away, or a callback, is called again */
#define HOST_MS       5000  /* between looks at disk, root and clock */
#define HOMES_MS      1000  /* between looks at homes that are away */
#define REMOVE_MS     20000 /* for the files of a conversation to be removed */
#define SETTLE_MS     200   /* image events come in bunches */

/* Between tests of the networks: rules may be taken away, an engine's network be removed. */
#define NETWORK_MS      600000
#define NETWORK_SOON_MS 20000 /* while one is refused */

#define FIRST_MESSAGE_MS 5000 /* connections wait so long for the first report on the engine */
#define RESTART_MS       1000
#define NOTIFY_DELAY_MS  2200 /* workers remember a list of runners for 2 s */
#define MESSAGE_MAX      (4u * 1024 * 1024)
#define NETWORK_UNTESTED "it is being tested; try again in a few seconds"

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
    char *image; /* of a runner, for the tests of networks; NULL: there is none */
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
    if (k->engine_is_lost || (!k->image && runners.n > 0))
        k->due[TEST_NETWORKS] = k->due[TEST_LIMITS] = deadline_in_ms(0);
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

/* Once for each time that the engine comes. */
static void test_limits(struct housekeeper *k)
{
    struct err e = ERR_INIT;

    k->due[TEST_LIMITS] = DEADLINE_NEVER;
    if (!k->image || k->config->limits_check == LIMITS_TRUST)
        return;
    if (limits_probe(k->spawner, k->image, &e) == 0)
        log_info("limits: tested from inside a container: memory and processes are bounded");
    else if (e.kind == ERR_REFUSED)
        log_warn("limits: %s", e.text);
    else
        log_warn("limits: could not be tested: %s", e.text);
    housekeeper_send(k, json_pack("{s:b, s:o}", "limits", e.kind != ERR_REFUSED, "error",
                                  json_from_bytes(e.text, strlen(e.text))));
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

static void housekeeper_main(void *ctx, int fd)
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

/* ---- the main process's side ---- */

void housekeeper_link_init(struct housekeeper_link *k, const struct spawner *spawner,
                           bool *network_news)
{
    *k = (struct housekeeper_link){
        .spawner = spawner,
        .helper = HELPER_INIT(MESSAGE_MAX),
        .start = DEADLINE_NEVER,
        .first_message = deadline_in_ms(FIRST_MESSAGE_MS),
        .notify = DEADLINE_NEVER,
        .network_news = network_news,
        .runners = {.engine_error = "the container engine has not answered yet",
                    .network_error = {"", NETWORK_UNTESTED, NETWORK_UNTESTED}}};
}

/* What a client can see of the runners: the list, or that there is none to be had. */
static json_t *visible_runners(const struct runners *runners)
{
    return *runners->engine_error ? json_null() : runners_encode(&runners->list);
}

static void network_read(struct runners *runners, const json_t *message)
{
    json_int_t tier = json_get_integer(message, "network", NETWORK_NONE);
    const char *error = json_get_string(message, "error");

    if (!error || tier <= NETWORK_NONE || tier >= NETWORK_TIERS)
        return;
    snprintf(runners->network_error[tier], sizeof runners->network_error[tier], "%s", error);
    runners->network_tested[tier] = true;
}

/* Programs that nothing bounds do not run, if so set. */
static void limits_read(struct runners *runners, const struct broker_config *config,
                        const json_t *message)
{
    runners->limits_hold = json_get_bool(message, "limits", 0);
    json_copy_string(message, "error", runners->limits_error, sizeof runners->limits_error);
    if (config->limits_check == LIMITS_REFUSE)
        snprintf(runners->engine_error, sizeof runners->engine_error, "%s",
                 runners->limits_hold ? "" : runners->limits_error);
}

static void runners_read(struct runners *runners, const struct broker_config *config,
                         const json_t *message)
{
    const json_t *list = json_object_get(message, "runners");

    json_copy_string(message, "engineError", runners->engine_error, sizeof runners->engine_error);
    runners->engine_sys = (int)json_get_integer(message, "errno", 0);
    if (!*runners->engine_error && config->limits_check == LIMITS_REFUSE && !runners->limits_hold)
        snprintf(runners->engine_error, sizeof runners->engine_error, "%s",
                 *runners->limits_error ? runners->limits_error
                                        : "the engine's limits are being tested");
    json_copy_string(message, "version", runners->facts.version, sizeof runners->facts.version);
    runners->facts.podman = json_get_bool(message, "podman", 0);
    runners->facts.rootless = json_get_bool(message, "rootless", 0);
    if (list) {
        engine_runners_clear(&runners->list);
        runners_decode(list, &runners->list);
    }
}

static void on_message(void *owner, void *item, uint32_t events)
{
    struct housekeeper_link *k = item;
    bool ended;
    json_auto_t *message = helper_next_message(&k->helper, &ended);

    (void)owner;
    (void)events;
    if (!message) /* SIGCHLD tells of its end */
        return;
    if (json_object_get(message, "network")) {
        network_read(&k->runners, message);
        *k->network_news = true;
        return;
    }
    if (json_object_get(message, "limits")) {
        limits_read(&k->runners, k->spawner->config, message);
        return;
    }
    k->first_message = DEADLINE_NEVER;
    json_auto_t *before = visible_runners(&k->runners);
    runners_read(&k->runners, k->spawner->config, message);
    json_auto_t *after = visible_runners(&k->runners);
    if (!json_equal(before, after))
        k->notify = deadline_in_ms(NOTIFY_DELAY_MS); /* after the last of several changes */
}

int housekeeper_link_start(struct housekeeper_link *k, struct err *e)
{
    const struct helper_spawn spawn = {.role = "housekeeper",
                                       .main = housekeeper_main,
                                       .ctx = k,
                                       .on_message = on_message,
                                       .item = k};

    k->start = DEADLINE_NEVER;
    return helper_start(&k->helper, k->spawner, &spawn, e);
}

void housekeeper_link_clear(struct housekeeper_link *k)
{
    pid_t pid = k->helper.pid;

    helper_end(&k->helper);
    if (pid > 0)
        waitpid(pid, NULL, 0); /* it dies with us, but must remove the containers of a probe */
    engine_runners_clear(&k->runners.list);
}

void housekeeper_link_tick(struct housekeeper_link *k, bool stopping)
{
    const struct broker_config *config = k->spawner->config;
    struct err e = ERR_INIT;

    if (!stopping && deadline_passed(k->start) && housekeeper_link_start(k, &e) < 0) {
        log_error("cannot start the housekeeper: %s", e.text);
        k->start = deadline_in_ms(RESTART_MS);
    }
    if (deadline_passed(k->first_message))
        k->first_message = DEADLINE_NEVER;
    if (!deadline_passed(k->notify))
        return;
    bool retry = config->runners_changed && !config->runners_changed(config->runners_changed_ctx);
    k->notify = retry ? deadline_in_ms(RETRY_MS) : DEADLINE_NEVER;
}

void housekeeper_link_reap(struct housekeeper_link *k, bool stopping)
{
    k->helper.pid = 0;
    helper_close(&k->helper);
    if (stopping)
        return;
    log_warn("the housekeeper ended unexpectedly; starting another");
    k->start = deadline_in_ms(RESTART_MS);
}

void housekeeper_link_ask_sweep(struct housekeeper_link *k)
{
    struct err e = ERR_INIT;
    json_auto_t *message = json_pack("{s:s}", "do", "sweep");

    if (k->helper.fd >= 0 && wire_post(k->helper.fd, message, -1, &e) < 0)
        log_debug("housekeeper: %s", e.text);
}
