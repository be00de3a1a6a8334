/* The main process's side of the housekeeper: its process, started again when it ends, and the
 * runners that it reports. */
#ifndef SANDCGI_BROKER_HOUSEKEEPER_LINK_H
#define SANDCGI_BROKER_HOUSEKEEPER_LINK_H

#include "common/broker/spawn.h"

struct housekeeper_link {
    const struct spawner *spawner; /* borrowed */
    struct helper helper;
    struct deadline start;         /* when one that has ended is started again */
    struct deadline first_message; /* connections wait until then; never: they need not */
    struct deadline notify;        /* when to call runners_changed; never: they did not change */
    struct runners runners;
};

void housekeeper_link_init(struct housekeeper_link *k, const struct spawner *spawner);
int housekeeper_link_start(struct housekeeper_link *k, struct err *e);
/* Ends it. */
void housekeeper_link_clear(struct housekeeper_link *k);

/* What has become due; when stopping nothing is started again. */
void housekeeper_link_tick(struct housekeeper_link *k, bool stopping);
struct deadline housekeeper_link_due(const struct housekeeper_link *k);
/* Has it reported for the first time, or had its time for that? */
bool housekeeper_link_is_ready(const struct housekeeper_link *k);

/* Its process has ended. */
void housekeeper_link_reap(struct housekeeper_link *k, bool stopping);
/* A child has ended that may have left its container. */
void housekeeper_link_ask_sweep(struct housekeeper_link *k);

#endif
