/* Whoever is to be heard while we wait for the engine (struct engine_attend), and whether they have
 * cancelled. */
#ifndef SANDCGI_ENGINE_DOCKER_ATTEND_H
#define SANDCGI_ENGINE_DOCKER_ATTEND_H

#include "common/base/clock.h"
#include "common/engine/engine.h"

#include <poll.h>
#include <stdbool.h>

/* All zero: nobody. */
struct docker_attend {
    const struct engine_attend *who; /* borrowed; NULL: nobody */
    bool cancelled;
};

/* who may be NULL. */
void docker_attend_begin(struct docker_attend *a, const struct engine_attend *who);
void docker_attend_end(struct docker_attend *a);

/* The descriptor to poll for POLLIN | POLLRDHUP; -1: none. When something came: docker_attend_tick.
 */
int docker_attend_fd(const struct docker_attend *a);
void docker_attend_tick(struct docker_attend *a);

/* As poll(2) of the one descriptor own, but gives a turn too; own->revents tells what came. -1 on
 * failures other than an interruption. */
int docker_attend_poll(struct docker_attend *a, struct pollfd *own, int timeout_ms);

#endif
