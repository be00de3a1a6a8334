#include "config.h"

#include "tests/unit/sandbox/kernel.h"

#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <linux/openat2.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t (*disk_free)(void);
bool lacks_openat2;
int n_openat2;

int __real_fstatvfs(int fd, struct statvfs *out);
int __wrap_fstatvfs(int fd, struct statvfs *out);

int __wrap_fstatvfs(int fd, struct statvfs *out)
{
    if (!disk_free)
        return __real_fstatvfs(fd, out);
    *out = (struct statvfs){.f_frsize = 1, .f_bavail = disk_free()};
    return 0;
}

int take_openat2_away(void **state)
{
    (void)state;
    lacks_openat2 = true;
    return 0;
}

/* In the place of the one in beneath.c, which is weak. */
int beneath_openat2(int dir_fd, const char *name, const struct open_how *how, size_t size)
{
    if (!lacks_openat2)
        return (int)syscall(SYS_openat2, dir_fd, name, how, size);
    n_openat2++;
    errno = ENOSYS;
    return -1;
}
