/*
 * The housekeeper: a long-lived child of the main process that talks to the engine between calls.
 * It tells the main process which runner images there are (at start, and within seconds of a
 * change), removes containers that have lost their supervisor, and tests the networks that programs
 * may have.
 *
 * It sends {"runners":[…], "version", "podman", "rootless"} or {"engineError":"why the engine
 * cannot be reached"}, {"network": tier, "error":"why no program may have it"}, {"limits":
 * enum limits_verdict, "error":"why they do not hold, or why that is not known"}, and is sent
 * {"do":"sweep"} when a child has died without cleaning up. It ends with its connection.
 */
#pragma once

#include "common/broker/spawn.h"

/* The main process's side: the process, started again when it ends, and what it reports. */
struct housekeeper_link {
    const struct spawner *spawner; /* borrowed */
    struct helper helper;
    struct deadline start;         /* when one that has ended is started again */
    struct deadline first_message; /* connections wait until then; never: they need not */
    struct deadline notify;        /* when to call runners_changed; never: they did not change */
    bool *network_news;            /* borrowed; set when a network has been tested */
    char lost[sizeof((struct err *)0)->text]; /* why the engine cannot be reached; "": it can be */
    struct runners runners;
};

void housekeeper_link_init(struct housekeeper_link *k, const struct spawner *spawner,
                           bool *network_news);
int housekeeper_link_start(struct housekeeper_link *k, struct err *e);
/* Ends it. */
void housekeeper_link_clear(struct housekeeper_link *k);

/* What has become due; when stopping nothing is started again. */
void housekeeper_link_tick(struct housekeeper_link *k, bool stopping);

/* Its process has ended. */
void housekeeper_link_reap(struct housekeeper_link *k, bool stopping);
/* A child has ended that may have left its container. */
void housekeeper_link_ask_sweep(struct housekeeper_link *k);

/* In the housekeeper: removes what processes that ended too early left in the tree's own folders.
 * now is Unix time. */
void housekeeper_sweep_files(const struct sandbox_root *root, int64_t now);

/* The life of its process; ctx is the link. */
void housekeeper_main(void *ctx, int fd);
