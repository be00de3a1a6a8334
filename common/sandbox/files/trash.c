#include "config.h"

#include "common/sandbox/files/trash.h"

#include "common/base/crypto.h"
#include "common/sandbox/files/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int trash_take(const struct sandbox_root *root, int at_fd, const char *name, char out[],
               struct err *e)
{
    char fresh[TRASH_NAME_LEN + 1];
    AUTO_FD int trash = openat(root->fd, TRASH_DIR, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (trash < 0)
        return err_errno(e, "SANDBOX_ROOT/" TRASH_DIR " cannot be opened");
    crypto_random_hex(TRASH_NAME_LEN / 2, fresh);
    if (renameat(at_fd, name, trash, fresh) < 0) {
        if (errno == ENOENT)
            return err_set(e, ERR_NOT_FOUND, "there is no such folder");
        return err_errno(e, "a folder cannot be moved to SANDBOX_ROOT/" TRASH_DIR);
    }
    memcpy(out, fresh, sizeof(fresh));
    return 0;
}

void trash_empty(const struct sandbox_root *root)
{
    tree_empty(root->fd, TRASH_DIR);
}
