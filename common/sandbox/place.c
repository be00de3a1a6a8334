#include "config.h"

#include "common/sandbox/place.h"

#include "common/base/mem.h"
#include "common/sandbox/ticket.h"

#include <fcntl.h>
#include <sys/file.h>

int place_take(const struct sandbox_root *root, const struct place_kind *kind, struct err *e)
{
    for (int i = 0; i < kind->max; i++) {
        AUTO_FREE char *path = mem_printf(TICKET_DIR "/%s-%d", kind->name, i);
        AUTO_FD int fd = openat(root->fd, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return err_errno(e, "what goes on at the same time cannot be counted");
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return TAKE_FD(fd);
    }
    return err_set(e, ERR_BUSY, "%d %s already; try again in a while", kind->max, kind->busy);
}
