/* Where the broker listens, for its children that outlive its main process. Private to
 * common/broker. */
#ifndef SANDCGI_BROKER_HOME_H
#define SANDCGI_BROKER_HOME_H

#include <sys/un.h>

struct home {
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* "": not known */
};

/* Where an asker found us is where the next main process will be found. */
void home_remember(struct home *h, int connection);
/* Connects without waiting: what goes on goes on. A non-blocking descriptor, or -1. */
int home_dial(const struct home *h);

#endif
