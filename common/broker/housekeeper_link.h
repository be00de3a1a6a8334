/* The broker's side of the housekeeper: its process, started again when it dies, and what it says.
 * Private to common/broker. */
#ifndef SANDCGI_BROKER_HOUSEKEEPER_LINK_H
#define SANDCGI_BROKER_HOUSEKEEPER_LINK_H

#include "common/base/clock.h"
#include "common/base/loop.h"
#include "common/base/sock.h"
#include "common/engine/engine.h"

#include <stdbool.h>
#include <sys/types.h>

struct broker;

struct housekeeper_link {
    pid_t pid; /* 0: none */
    int fd;
    struct sock_inbox inbox; /* of fd, as the next */
    struct loop_watch watch;
    struct deadline start;      /* when a dead one is started again */
    struct deadline first_word; /* connections wait until then; never: they need not */
    struct deadline news;       /* when to tell that the runners changed; never: they did not */
    struct engine_runners runners;
    char version[16]; /* of the engine's API, as supervisors are told it; "" unknown */
    char trouble[sizeof((struct err *)0)->text]; /* why the engine cannot be reached; "" = it can */
};

void housekeeper_link_init(struct housekeeper_link *k);
int housekeeper_link_start(struct broker *b, struct err *e);
/* Ends it. */
void housekeeper_link_clear(struct broker *b);

/* What has become due. */
void housekeeper_link_tick(struct broker *b);
/* When something will be. */
struct deadline housekeeper_link_next(const struct housekeeper_link *k);
/* Has it, or its time, passed that connections wait for? */
bool housekeeper_link_ready(const struct housekeeper_link *k);

/* Its process has ended. */
void housekeeper_link_reap(struct broker *b);
/* A child died that may have left its container. */
void housekeeper_link_ask_sweep(struct broker *b);

#endif
