/* Where the broker listens, for its children that outlive its main process. Private to
 * common/broker. */
#ifndef SANDCGI_SUPERVISOR_BROKER_ADDRESS_H
#define SANDCGI_SUPERVISOR_BROKER_ADDRESS_H

#include <sys/un.h>

struct broker_address {
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* "": not known */
};

/* Where an caller found us is where the next main process will be found. */
void broker_address_remember(struct broker_address *h, int connection);
/* Connects without waiting: what goes on goes on. A non-blocking descriptor, or -1. */
int broker_address_dial(const struct broker_address *h);

#endif
