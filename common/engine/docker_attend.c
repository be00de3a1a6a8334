#include "config.h"

#include "common/engine/docker_attend.h"

#include <errno.h>

void docker_attend_begin(struct docker_attend *a, const struct engine_attend *who)
{
    *a = (struct docker_attend){.who = who};
}

void docker_attend_end(struct docker_attend *a)
{
    a->who = NULL;
}

int docker_attend_fd(const struct docker_attend *a)
{
    return a->who && !a->cancelled ? a->who->fd : -1;
}

void docker_attend_tick(struct docker_attend *a)
{
    if (a->who && !a->cancelled && !a->who->turn(a->who->ctx))
        a->cancelled = true;
}

int docker_attend_poll(struct docker_attend *a, struct pollfd *own, int timeout_ms)
{
    struct pollfd p[2] = {*own, {.fd = docker_attend_fd(a), .events = POLLIN | POLLRDHUP}};
    int n = poll(p, 2, timeout_ms);

    own->revents = n > 0 ? p[0].revents : 0;
    if (n > 0 && p[1].revents)
        docker_attend_tick(a);
    return n < 0 && errno != EINTR ? -1 : 0;
}
