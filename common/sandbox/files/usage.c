#include "config.h"

#include "common/sandbox/files/usage.h"

#include "common/sandbox/files/beneath.h"

#include <errno.h>
#include <fcntl.h>

#define BLOCK 512 /* the unit of st_blocks, whatever the file system's is */

struct count {
    const struct usage *enough; /* NULL: go on to the end */
    struct usage *out;
    struct err *e;
};

uint64_t usage_of(const struct stat *st)
{
    uint64_t bytes = (uint64_t)st->st_blocks * BLOCK;

    return S_ISDIR(st->st_mode) || st->st_nlink == 0 ? bytes : bytes / st->st_nlink;
}

static bool has_enough(const struct count *c)
{
    return c->enough && (c->out->bytes > c->enough->bytes || c->out->files > c->enough->files);
}

/* depth counts the folders that are open, itself among them: it bounds descriptors and stack. */
static int count_dir(struct count *c, int at_fd, const char *name, int depth)
{
    AUTO_DIR DIR *dir = beneath_open_dir(at_fd, name);
    const struct dirent *entry;
    struct stat st;

    if (!dir && beneath_system_failed(errno))
        return err_errno(c->e, "the conversation's files cannot be counted");
    while (dir && (entry = readdir(dir))) {
        if (beneath_is_dot(entry->d_name) ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        c->out->files++;
        c->out->bytes += usage_of(&st);
        if (has_enough(c)) {
            c->out->partial = true;
            return 0;
        }
        if (!S_ISDIR(st.st_mode))
            continue;
        if (depth == USAGE_DEPTH_MAX)
            c->out->partial = true;
        else if (count_dir(c, dirfd(dir), entry->d_name, depth + 1) < 0)
            return -1;
        if (has_enough(c))
            return 0;
    }
    return 0;
}

int usage_measure(const struct sandbox *sb, const struct usage *enough, struct usage *out,
                  struct err *e)
{
    struct usage total = {0};
    struct count c = {.enough = enough, .out = &total, .e = e};

    if (count_dir(&c, sb->fd, ".", 1) < 0)
        return -1;
    *out = total;
    return 0;
}
