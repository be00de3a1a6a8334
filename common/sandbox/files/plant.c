#include "config.h"

#include "common/sandbox/files/plant.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* They get their modes and times when all is in them. */
struct plant_folder {
    char *name;
    struct plant_attributes is;
};

static void set_times(int fd, const struct plant_attributes *is)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, is->mtime};

    (void)futimens(fd, times);
}

/* The folder that name is in, and its last component. */
static int open_above(const struct plant *p, const char *name, const char **out_last, struct err *e)
{
    const char *slash = strrchr(name, '/');
    AUTO_FREE char *above = slash ? mem_strndup(name, (size_t)(slash - name)) : NULL;

    *out_last = slash ? slash + 1 : name;
    int fd = above ? beneath_open(p->dir_fd, above, O_RDONLY | O_DIRECTORY)
                   : fcntl(p->dir_fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return err_set(e, ERR_INVALID, "'%.200s' comes before its folder in %s", name, p->from);
    return fd;
}

static int refuse_made(const struct plant *p, const char *name, struct err *e)
{
    if (errno == EEXIST)
        return err_set(e, ERR_INVALID, "'%.200s' is twice in %s", name, p->from);
    return err_errno(e, "'%.200s' cannot be made", name);
}

int plant_folder(struct plant *p, const char *name, const struct plant_attributes *is,
                 struct err *e)
{
    const char *last;
    AUTO_FD int above = open_above(p, name, &last, e);

    if (above < 0)
        return -1;
    if (mkdirat(above, last, 0700) < 0)
        return refuse_made(p, name, e);
    p->folders = mem_resize(p->folders, p->n_folders + 1, sizeof *p->folders);
    p->folders[p->n_folders++] = (struct plant_folder){mem_strdup(name), *is};
    return 0;
}

int plant_link(struct plant *p, const char *name, const char *target, struct err *e)
{
    const char *last;
    AUTO_FD int above = open_above(p, name, &last, e);

    if (above < 0)
        return -1;
    if (symlinkat(target, above, last) < 0)
        return refuse_made(p, name, e);
    if (fchownat(above, last, p->owner.uid, p->owner.gid, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(e, "a link cannot be given to its user");
    return 0;
}

int plant_file(const struct plant *p, const char *name, struct err *e)
{
    const char *last;
    AUTO_FD int above = open_above(p, name, &last, e);

    if (above < 0)
        return -1;
    int fd = openat(above, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? refuse_made(p, name, e) : fd;
}

int plant_finish_file(const struct plant *p, int fd, const struct plant_attributes *is,
                      struct err *e)
{
    set_times(fd, is);
    if (fchown(fd, p->owner.uid, p->owner.gid) < 0 || fchmod(fd, is->mode) < 0)
        return err_errno(e, "a restored file cannot be given to its user");
    return 0;
}

static int finish_folder(const struct plant *p, const struct plant_folder *f, struct err *e)
{
    AUTO_FD int fd = beneath_open(p->dir_fd, f->name, O_RDONLY | O_DIRECTORY);

    if (fd < 0 || fchown(fd, p->owner.uid, p->owner.gid) < 0 || fchmod(fd, f->is.mode) < 0)
        return err_errno(e, "a restored folder cannot be given to its user");
    set_times(fd, &f->is);
    return 0;
}

/* The last first: a folder's time changes with what is in it. */
int plant_finish(struct plant *p, struct err *e)
{
    int rc = 0;

    for (size_t i = p->n_folders; rc == 0 && i > 0; i--)
        rc = finish_folder(p, &p->folders[i - 1], e);
    plant_clear(p);
    return rc;
}

void plant_clear(struct plant *p)
{
    for (size_t i = 0; i < p->n_folders; i++)
        free(p->folders[i].name);
    free(TAKE_PTR(p->folders));
    p->n_folders = 0;
    auto_close_fd(&p->dir_fd);
}
