#include "config.h"

#include "common/store/record.h"

#include "common/base/clock.h"
#include "common/base/fdio.h"
#include "common/sandbox/files/staging.h"
#include "common/sandbox/state/unsaved.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define PATH_LEN   (sizeof SAVED_DIR + 1 + SANDBOX_NAME_LEN + sizeof BESIDE)
#define BESIDE     ".new"
#define TIME_S_MAX 9000000000ll

static const char *path_of(const char *name, const char *suffix, char out[PATH_LEN])
{
    snprintf(out, PATH_LEN, SAVED_DIR "/%s%s", name, suffix);
    return out;
}

enum record_state save_record_read(const struct sandbox_root *root, const char *name,
                                   struct manifest *out)
{
    AUTO_BUF struct buf text = BUF_INIT(MANIFEST_MAX);
    char path[PATH_LEN];
    struct err why = ERR_INIT;

    *out = (struct manifest){0};
    AUTO_FD int fd = openat(root->fd, path_of(name, "", path), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fdio_read_to_end(fd, &text, &why) < 0)
        return RECORD_NONE;
    if (text.len == 0)
        return RECORD_STALE;
    return manifest_parse(text.data, text.len, out, &why) == 0 ? RECORD_KEPT : RECORD_NONE;
}

int save_record_write(const struct sandbox_root *root, const char *name, const struct manifest *m,
                      bool beside, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(MANIFEST_MAX);
    AUTO_STAGED struct staged file = STAGED_INIT;
    char path[PATH_LEN];

    if (m && manifest_write(m, true, &text) < 0)
        return err_set(e, ERR_LIMIT, "the record of a conversation is over %u bytes", MANIFEST_MAX);
    AUTO_FD int fd = staging_create_file(root, &file);
    if (fd < 0)
        return err_errno(e, "the record of a conversation cannot be made");
    if (fdio_write_all(fd, text.data, text.len, e) < 0)
        return -1;
    if (staged_move(&file, root->fd, path_of(name, beside ? BESIDE : "", path),
                    STAGED_MOVE_REPLACE) < 0)
        return err_errno(e, "the record of a conversation cannot be put in its place");
    return 0;
}

int save_record_put(const struct sandbox_root *root, const char *name, struct err *e)
{
    char from[PATH_LEN], to[PATH_LEN];

    if (renameat(root->fd, path_of(name, BESIDE, from), root->fd, path_of(name, "", to)) < 0)
        return err_errno(e, "the record of a conversation cannot be put in its place");
    return 0;
}

void save_record_remove(const struct sandbox_root *root, const char *name)
{
    char path[PATH_LEN];

    unlinkat(root->fd, path_of(name, "", path), 0);
}

struct timespec save_time(struct timespec t)
{
    return t.tv_sec > TIME_S_MAX || t.tv_sec < -TIME_S_MAX ? (struct timespec){0} : t;
}
