/* The main process's side of the housekeeper. */
#include "config.h"

#include "common/broker/housekeeper.h"

#include "common/base/log.h"
#include "common/rpc/json.h"

#include <stdio.h>
#include <sys/wait.h>

#define FIRST_MESSAGE_MS 5000 /* connections wait so long for the first report on the engine */
#define RESTART_MS       1000
#define NOTIFY_DELAY_MS  2200 /* workers remember a list of runners for 2 s */
#define MESSAGE_MAX      (4u * 1024 * 1024)
#define RETRY_MS         1000 /* until a callback is called again */
#define NOT_YET          "the container engine has not answered yet"
#define NETWORK_UNTESTED "it is being tested; try again in a few seconds"
#define LIMITS_UNTRIED   "the engine's limits are being tested; try again in a few seconds"

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
        .lost = NOT_YET,
        .runners = {.engine_error = NOT_YET,
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

static void limits_read(struct runners *runners, const json_t *message)
{
    const json_int_t verdict = json_get_integer(message, "limits", LIMITS_UNKNOWN);

    runners->limits = verdict > LIMITS_UNKNOWN && verdict < LIMITS_VERDICTS
                          ? (enum limits_verdict)verdict
                          : LIMITS_UNKNOWN;
    json_copy_string(message, "error", runners->limits_error, sizeof runners->limits_error);
}

/* Why nothing can run, from all that is known. With LIMITS_REFUSE only a verdict opens the server.
 */
static void settle(struct housekeeper_link *k)
{
    struct runners *r = &k->runners;
    const char *why = k->lost;

    if (!*why && k->spawner->config->limits_check == LIMITS_REFUSE && r->limits != LIMITS_HOLD)
        why = *r->limits_error ? r->limits_error : LIMITS_UNTRIED;
    snprintf(r->engine_error, sizeof r->engine_error, "%s", why);
}

/* Another engine may be there when it comes back: what was found out about its limits is over. */
static void runners_read(struct housekeeper_link *k, const json_t *message)
{
    struct runners *runners = &k->runners;
    const json_t *list = json_object_get(message, "runners");

    json_copy_string(message, "engineError", k->lost, sizeof k->lost);
    runners->engine_sys = (int)json_get_integer(message, "errno", 0);
    if (*k->lost) {
        runners->limits = LIMITS_UNKNOWN;
        runners->limits_error[0] = '\0';
    }
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
    json_auto_t *before = visible_runners(&k->runners);
    if (json_object_get(message, "limits")) {
        limits_read(&k->runners, message);
    } else {
        k->first_message = DEADLINE_NEVER;
        runners_read(k, message);
    }
    settle(k);
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
