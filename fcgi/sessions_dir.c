#include "config.h"

#include "fcgi/sessions_dir.h"

#include "common/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT_MODE 0711 /* as the broker would make it: to be walked through, not listed */
#define DIR_NAME  ".sessions"

int sessions_dir_open(const struct settings *s, const struct account *workers, struct err *e)
{
    if (mkdir(s->sandbox_root, ROOT_MODE) < 0 && errno != EEXIST)
        return err_errno(e, "SANDBOX_ROOT %s cannot be made", s->sandbox_root);
    AUTO_FD int root = open(s->sandbox_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return err_errno(e, "SANDBOX_ROOT %s cannot be opened as a directory", s->sandbox_root);
    if (mkdirat(root, DIR_NAME, 0700) < 0 && errno != EEXIST)
        return err_errno(e, "SANDBOX_ROOT %s is not writable", s->sandbox_root);
    AUTO_FD int fd = openat(root, DIR_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, "SANDBOX_ROOT %s: %s cannot be opened as a directory", s->sandbox_root,
                         DIR_NAME);
    if ((geteuid() == 0 && fchown(fd, workers->uid, workers->gid) < 0) || fchmod(fd, 0700) < 0)
        return err_errno(e, "SANDBOX_ROOT %s: %s cannot be given to the workers", s->sandbox_root,
                         DIR_NAME);
    return TAKE_FD(fd);
}
