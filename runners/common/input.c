#include "runners/common/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

bool input_open(struct input *in)
{
    char path[32];

    in->fill_fd = memfd_create("stdin", MFD_CLOEXEC);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", in->fill_fd);
    /* A description of its own: what we write moves nobody's position, and the program only reads.
     */
    in->fd = in->fill_fd < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (in->fd < 0)
        entry_say(errno, "memory for the input");
    return in->fd >= 0;
}
