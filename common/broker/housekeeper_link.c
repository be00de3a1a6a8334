#include "config.h"

#include "common/broker/housekeeper_link.h"

#include "common/base/log.h"
#include "common/broker/broker.h"
#include "common/broker/housekeeper.h"
#include "common/protocol/wire.h"
#include "common/rpc/json.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define FIRST_WORD_MS 5000 /* how long connections wait for its first look at the engine */
#define RESTART_MS    1000
#define NEWS_DELAY_MS 2200 /* workers remember a list of runners for 2 s */
#define WORD_MAX      (4u * 1024 * 1024)

void housekeeper_link_init(struct housekeeper_link *k)
{
    *k = (struct housekeeper_link){.fd = -1,
                                   .watch = LOOP_WATCH_INIT,
                                   .inbox = SOCK_INBOX_INIT(WORD_MAX),
                                   .start = DEADLINE_NEVER,
                                   .first_word = deadline_in_ms(FIRST_WORD_MS),
                                   .news = DEADLINE_NEVER,
                                   .trouble = "the container engine has not answered yet"};
}

static void leave(struct broker *b)
{
    loop_remove(&b->loop, &b->housekeeper.watch);
    auto_close_fd(&b->housekeeper.fd);
    sock_inbox_clear(&b->housekeeper.inbox);
}

/* What a client can see of the runners: the list, or that there is none to be had. */
static json_t *seen_of_runners(const struct housekeeper_link *k)
{
    return *k->trouble ? json_null() : housekeeper_runners_encode(&k->runners);
}

static void take_word(struct housekeeper_link *k, const json_t *message)
{
    const char *trouble = json_get_string(message, "trouble");
    const char *version = json_get_string(message, "version");
    const json_t *list = json_object_get(message, "runners");

    snprintf(k->trouble, sizeof k->trouble, "%s", trouble ? trouble : "");
    snprintf(k->version, sizeof k->version, "%s", version ? version : "");
    if (list) {
        engine_runners_clear(&k->runners);
        housekeeper_runners_decode(list, &k->runners);
    }
}

static void hear(void *owner, void *item, uint32_t events)
{
    struct broker *b = owner;
    struct housekeeper_link *k = item;
    struct err e = ERR_INIT;
    (void)events;
    int whole = sock_inbox_take(&k->inbox, k->fd, &e);
    if (whole == 0)
        return;
    json_auto_t *message = whole > 0 ? wire_parse(&k->inbox.message, &e) : NULL;
    if (!message) {
        leave(b); /* its death is noticed by SIGCHLD */
        return;
    }
    k->first_word = DEADLINE_NEVER;
    json_auto_t *before = seen_of_runners(k);
    take_word(k, message);
    json_auto_t *after = seen_of_runners(k);
    if (!json_equal(before, after))
        k->news = deadline_min(k->news, deadline_in_ms(NEWS_DELAY_MS));
}

static void be_the_housekeeper(struct broker *b, int fd)
{
    housekeeper_main(b->config, &b->root, fd);
}

int housekeeper_link_start(struct broker *b, struct err *e)
{
    struct housekeeper_link *k = &b->housekeeper;
    pid_t pid = spawn_helper(b, "housekeeper", be_the_housekeeper, &k->fd, e);

    if (pid < 0)
        return -1;
    k->pid = pid;
    k->start = DEADLINE_NEVER;
    return loop_add(&b->loop, &k->watch, k->fd, EPOLLIN, hear, k, e);
}

void housekeeper_link_clear(struct broker *b)
{
    if (b->housekeeper.pid > 0)
        kill(b->housekeeper.pid, SIGTERM);
    leave(b);
    engine_runners_clear(&b->housekeeper.runners);
}

static void tell_news(struct broker *b)
{
    b->housekeeper.news = DEADLINE_NEVER;
    if (b->config->runners_changed)
        b->config->runners_changed(b->config->runners_changed_ctx);
}

void housekeeper_link_tick(struct broker *b)
{
    struct housekeeper_link *k = &b->housekeeper;
    struct err e = ERR_INIT;
    if (!b->stopping && deadline_passed(k->start) && housekeeper_link_start(b, &e) < 0) {
        log_error("housekeeper: %s", e.text);
        k->start = deadline_in_ms(RESTART_MS);
    }
    if (deadline_passed(k->first_word))
        k->first_word = DEADLINE_NEVER;
    if (deadline_passed(k->news))
        tell_news(b);
}

struct deadline housekeeper_link_next(const struct housekeeper_link *k)
{
    return deadline_min(k->first_word, deadline_min(k->start, k->news));
}

bool housekeeper_link_ready(const struct housekeeper_link *k)
{
    return k->first_word.at_ms < 0;
}

void housekeeper_link_reap(struct broker *b)
{
    struct housekeeper_link *k = &b->housekeeper;
    k->pid = 0;
    leave(b);
    if (b->stopping)
        return;
    log_warn("the housekeeper ended unexpectedly; starting another");
    k->start = deadline_in_ms(RESTART_MS);
}

void housekeeper_link_ask_sweep(struct broker *b)
{
    struct err e = ERR_INIT;
    json_auto_t *message = json_pack("{s:i}", "sweepInMs", 0);
    if (b->housekeeper.fd >= 0 && wire_post(b->housekeeper.fd, message, -1, &e) < 0)
        log_debug("housekeeper: %s", e.text);
}
