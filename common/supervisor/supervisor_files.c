#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/records/retention_notice.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/state.h"

#include <fcntl.h>
#include <sys/stat.h>

int supervisor_look_before(struct supervisor *s, struct snapshot *out, struct err *e)
{
    const struct usage nothing = {0};

    s->usage.partial = true;
    if (s->fresh)
        return quota_check_usage(&s->sandbox, &nothing, 0, e);
    return retention_notice_before(&s->sandbox, out, e);
}

void supervisor_add_retention(struct supervisor *s, const struct snapshot *after, json_t *result)
{
    s->usage = after->usage;
    retention_notice_after(&s->sandbox, after, result);
    if (s->sandbox.made)
        retention_notice_expired(&s->sandbox, result);
}

void supervisor_open_files(struct supervisor *s, const json_t *result)
{
    size_t i;
    json_t *file;

    if (!s->options.opened)
        return;
    json_array_foreach(json_object_get(result, "files"), i, file)
    {
        struct err e = ERR_INIT;
        struct stat st;

        if (!json_get_string(file, "url"))
            continue;
        /* They are told apart by their order alone: behind one that is gone nothing is opened. */
        int fd = files_open(&s->sandbox, json_get_string(file, "name"), &st, &e);
        if (fd < 0 || !fds_add(&s->opened, fd))
            return;
    }
}

/* The size of a sandbox that was not counted to its end is found by counting, when it is needed. */
void supervisor_note_size(const struct supervisor *s)
{
    if (s->usage.partial)
        state_forget_size(s->start->root, s->sandbox.name);
    else
        state_note_size(s->start->root, s->sandbox.name, &s->usage);
}

ino_t supervisor_seat(const struct sandbox_root *root, const char *sandbox_dir)
{
    struct stat st;

    return fstatat(root->fd, sandbox_dir, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino : 0;
}
