#include "config.h"

#include "common/broker/housekeeper_link.h"

#include "common/base/log.h"
#include "common/broker/housekeeper.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <signal.h>
#include <stdio.h>

#define FIRST_MESSAGE_MS 5000 /* connections wait so long for the first report on the engine */
#define RESTART_MS       1000
#define NOTIFY_DELAY_MS  2200 /* workers remember a list of runners for 2 s */
#define MESSAGE_MAX      (4u * 1024 * 1024)

void housekeeper_link_init(struct housekeeper_link *k, const struct spawner *spawner)
{
    *k = (struct housekeeper_link){
        .spawner = spawner,
        .helper = HELPER_INIT(MESSAGE_MAX),
        .start = DEADLINE_NEVER,
        .first_message = deadline_in_ms(FIRST_MESSAGE_MS),
        .notify = DEADLINE_NEVER,
        .runners = {.engine_error = "the container engine has not answered yet"}};
}

/* What a client can see of the runners: the list, or that there is none to be had. */
static json_t *visible_runners(const struct runners *runners)
{
    return *runners->engine_error ? json_null() : runners_encode(&runners->list);
}

static void runners_read(struct runners *runners, const json_t *message)
{
    const char *engine_error = json_get_string(message, "engineError");
    const char *version = json_get_string(message, "version");
    const json_t *list = json_object_get(message, "runners");

    snprintf(runners->engine_error, sizeof runners->engine_error, "%s",
             engine_error ? engine_error : "");
    snprintf(runners->version, sizeof runners->version, "%s", version ? version : "");
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
    if (ended)
        helper_close(&k->helper, k->spawner->io->loop); /* SIGCHLD tells of its end */
    if (!message)
        return;
    k->first_message = DEADLINE_NEVER;
    json_auto_t *before = visible_runners(&k->runners);
    runners_read(&k->runners, message);
    json_auto_t *after = visible_runners(&k->runners);
    if (!json_equal(before, after))
        k->notify = deadline_min(k->notify, deadline_in_ms(NOTIFY_DELAY_MS));
}

static void run_housekeeper(void *ctx, int fd)
{
    const struct housekeeper_link *k = ctx;

    housekeeper_main(k->spawner->config, k->spawner->root, fd);
}

int housekeeper_link_start(struct housekeeper_link *k, struct err *e)
{
    const struct helper_spawn spawn = {.role = "housekeeper",
                                       .main = run_housekeeper,
                                       .ctx = k,
                                       .on_message = on_message,
                                       .item = k};

    k->start = DEADLINE_NEVER;
    return helper_start(&k->helper, k->spawner, &spawn, e);
}

void housekeeper_link_clear(struct housekeeper_link *k)
{
    if (k->helper.pid > 0)
        kill(k->helper.pid, SIGTERM);
    helper_close(&k->helper, k->spawner->io->loop);
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
    k->notify = DEADLINE_NEVER;
    if (config->runners_changed)
        config->runners_changed(config->runners_changed_ctx);
}

struct deadline housekeeper_link_due(const struct housekeeper_link *k)
{
    return deadline_min(k->first_message, deadline_min(k->start, k->notify));
}

bool housekeeper_link_is_ready(const struct housekeeper_link *k)
{
    return k->first_message.at_ms < 0;
}

void housekeeper_link_reap(struct housekeeper_link *k, bool stopping)
{
    k->helper.pid = 0;
    helper_close(&k->helper, k->spawner->io->loop);
    if (stopping)
        return;
    log_warn("the housekeeper ended unexpectedly; starting another");
    k->start = deadline_in_ms(RESTART_MS);
}

void housekeeper_link_ask_sweep(struct housekeeper_link *k)
{
    struct err e = ERR_INIT;
    json_auto_t *message = json_pack("{s:i}", "sweepInMs", 0);

    if (k->helper.fd >= 0 && wire_post(k->helper.fd, message, -1, &e) < 0)
        log_debug("housekeeper: %s", e.text);
}
