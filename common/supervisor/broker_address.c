#include "config.h"

#include "common/supervisor/broker_address.h"

#include "common/base/auto.h"

#include <string.h>
#include <sys/socket.h>

void broker_address_remember(struct broker_address *h, int connection)
{
    struct sockaddr_un a = {0};
    socklen_t len = sizeof a;

    if (getsockname(connection, (struct sockaddr *)&a, &len) == 0 && a.sun_family == AF_UNIX)
        memcpy(h->path, a.sun_path, sizeof h->path - 1);
}

int broker_address_dial(const struct broker_address *h)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    memcpy(a.sun_path, h->path, strlen(h->path) + 1);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof a) < 0)
        return -1;
    return TAKE_FD(fd);
}
