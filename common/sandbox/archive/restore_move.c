#include "config.h"

#include "common/sandbox/archive/restore_move.h"

#include "common/base/clock.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/files/tree.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/state/user_quota.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

bool restore_is_there(const struct restore_move *m, const struct restored *c)
{
    return faccessat(m->root->fd, c->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int restore_check_target(const struct restore_move *m, const struct restored *c, struct err *e)
{
    if (!restore_is_there(m, c))
        return 0;
    if (!m->want->replace)
        return err_set(e, ERR_EXISTS,
                       "conversation %s of %s is there already; leave those that are there with "
                       "--skip-existing, or replace them with --replace",
                       c->conversation, c->tenant);
    if (sandbox_is_held(m->root, c->name))
        return err_set(e, ERR_BUSY, "conversation %s of %s is in use; try again when it is not",
                       c->conversation, c->tenant);
    return 0;
}

static ino_t staged_inode(const struct restore_move *m, const struct restored *c)
{
    struct stat st = {.st_ino = 0};

    (void)fstatat(m->staging_fd, c->staged, &st, AT_SYMLINK_NOFOLLOW);
    return st.st_ino;
}

/* A broker can end between an exchange and its answer: the staged folder tells. */
static int replace(const struct restore_move *m, struct restored *c, struct err *e)
{
    const struct restore_want *want = m->want;
    const ino_t before = staged_inode(m, c);
    const int rc = want->exchange(want->ctx, c->tenant, c->conversation, c->staged, e);

    c->replaced = staged_inode(m, c) != before;
    return rc < 0 ? err_wrap(e, "conversation %s of %s", c->conversation, c->tenant) : 0;
}

static int put_in_place(const struct restore_move *m, struct restored *c, struct err *e)
{
    if (restore_check_target(m, c, e) < 0)
        return -1;
    if (restore_is_there(m, c))
        return replace(m, c, e);
    if (beneath_rename_free(m->staging_fd, c->staged, m->root->fd, c->name) < 0)
        return err_errno(e, "conversation %s of %s", c->conversation, c->tenant);
    c->moved = true;
    return 0;
}

static int move_in(const struct restore_move *m, struct restored *c, struct err *e)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;

    if (put_in_place(m, c, e) < 0 || sandbox_find_named(m->root, c->name, &sb, e) < 0)
        return -1;
    return state_note_use(&sb, c->tenant, c->conversation, e);
}

static void remove_staged(const struct restore_move *m, const struct restored *c)
{
    char trash[TRASH_NAME_LEN + 1];
    struct err ignored = ERR_INIT;
    struct stat st;

    if (fstatat(m->staging_fd, c->staged, &st, AT_SYMLINK_NOFOLLOW) == 0)
        user_quota_drop(m->root, st.st_uid);
    (void)trash_take(m->root, m->staging_fd, c->staged, trash, &ignored);
}

/* All is in its place: removes what was there before, and what is known of it. */
static void finish_all(const struct restore_move *m, int64_t before)
{
    const struct restore_want *want = m->want;

    for (size_t i = 0; i < m->n; i++) {
        const struct restored *c = &m->all[i];
        (void)state_take_expired(m->root, c->name);
        if (!c->replaced)
            continue;
        want->forget_runs(want->ctx, c->tenant, c->conversation, before);
        remove_staged(m, c);
    }
    trash_empty(m->root);
}

int restore_move_all(const struct restore_move *m, struct err *e)
{
    const int64_t before = clock_unix_s();

    for (size_t i = 0; i < m->n; i++)
        if (move_in(m, &m->all[i], e) < 0)
            return -1;
    finish_all(m, before);
    return 0;
}

/* One conversation after a failure; -1: it is in use by now. */
static int take_back(const struct restore_move *m, struct restored *c)
{
    const struct restore_want *want = m->want;
    char trash[TRASH_NAME_LEN + 1];
    struct err why = ERR_INIT;

    if (c->moved) {
        if (sandbox_retire(m->root, c->name, TRASH_DIR, trash, &why) < 0)
            return -1;
        state_forget(m->root, c->name);
        return 0;
    }
    if (c->replaced && want->exchange(want->ctx, c->tenant, c->conversation, c->staged, &why) < 0)
        return -1;
    if (c->staged[0]) /* the backup's */
        remove_staged(m, c);
    return 0;
}

/* The last first: what is twice in the backup was moved twice. */
int restore_take_back(const struct restore_move *m, struct err *e)
{
    const struct restored *kept = NULL;

    for (size_t i = m->n; i > 0; i--)
        if (take_back(m, &m->all[i - 1]) < 0)
            kept = &m->all[i - 1];
    trash_empty(m->root);
    if (!kept)
        return err_wrap(e, "nothing was restored, and all conversations are as before");
    if (kept->moved)
        return err_wrap(e, "conversation %s of %s stays restored, since it is in use",
                        kept->conversation, kept->tenant);
    return err_wrap(
        e,
        "conversation %s of %s stays replaced, since it is in use; SANDBOX_ROOT/" STAGING_DIR
        "/%s has its files of before for a day",
        kept->conversation, kept->tenant, kept->staged);
}
