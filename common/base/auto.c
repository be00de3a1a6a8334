#include "config.h"

#include "common/base/auto.h"

#include <errno.h>

void auto_close_fd(int *fd)
{
    if (*fd < 0)
        return;
    int saved = errno;
    /* On Linux the descriptor is gone even when close says EINTR: never a second try. */
    close(*fd);
    *fd = -1;
    errno = saved;
}
