/* The files of a persistent sandbox, before and after a call. A small directory is listed at once;
 * a child process lists what takes longer and writes the result to a pipe that the loop reads. */
#include "config.h"

#include "common/supervisor/supervisor_self.h"

#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/records/run_result.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/trim.h"

#include <errno.h>
#include <string.h>

#define SMALL_STEPS 256 /* directory entries that are listed at once */
#define LISTING_MAX                                                                                \
    (sizeof(struct header) +                                                                       \
     SNAPSHOT_ENTRIES_MAX * (sizeof(struct snapshot_entry) + FILES_NAME_MAX + 1))

/* What the child writes: this, and for each file its entry and its name with the NUL. Pointers in
 * them mean nothing. */
struct header {
    size_t len; /* of all */
    struct err e, over;
    struct snapshot files;
};

static _Noreturn void listing_child(const struct supervisor *s, const struct call *call,
                                    bool before, int fd)
{
    AUTO_BUF struct buf text = BUF_INIT(LISTING_MAX);
    struct header h = {.over = call->run.over};
    struct err e = ERR_INIT;

    if (before)
        retention_notice_before(&s->sandbox, &h.files, &h.e);
    else
        trim_after(&s->sandbox, &call->run.before, false, &h.files, &h.over, &h.e);
    buf_add(&text, &h, sizeof h);
    for (size_t i = 0; i < h.files.n; i++) {
        const struct snapshot_entry *entry = &h.files.items[i];

        buf_add(&text, entry, sizeof *entry);
        buf_add(&text, entry->name, strlen(entry->name) + 1);
    }
    if (buf_ok(&text))
        memcpy(text.data, &text.len, sizeof h.len);
    _exit(buf_ok(&text) && fdio_write_all(fd, text.data, text.len, &e) == 0 ? 0 : 1);
}

static int listing_read(const struct buf *text, struct snapshot *out, struct err *over,
                        struct err *e)
{
    struct header h = {0};

    if (buf_ok(text) && text->len >= sizeof h)
        memcpy(&h, text->data, sizeof h);
    if (h.len == 0 || h.len != text->len)
        return err_set(e, ERR_INTERNAL, "the process that lists the sandbox's files died");
    *over = h.over;
    *e = h.e;
    if (h.e.kind != ERR_NONE)
        return -1;
    const char *at = text->data + sizeof h;
    *out = h.files;
    out->items = mem_array(h.files.n + 1, sizeof *out->items);
    for (size_t i = 0; i < out->n; i++) {
        struct snapshot_entry *entry = &out->items[i];

        memcpy(entry, at, sizeof *entry);
        at += sizeof *entry;
        entry->name = mem_strdup(at);
        at += strlen(at) + 1;
    }
    return 0;
}

void psandbox_listing_clear(struct call *call)
{
    side_process_end(&call->listing.lister);
    buf_clear(&call->listing.text);
}

static void listing_on_ready(void *owner, void *item, uint32_t events)
{
    AUTO_SNAPSHOT struct snapshot files = {0};
    struct supervisor *s = owner;
    struct call *call = item;
    struct err e = ERR_INIT;
    char *room = buf_reserve(&call->listing.text, 1 << 16);

    (void)events;
    ssize_t n = room ? read(call->listing.lister.fd, room, 1 << 16) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        buf_grew(&call->listing.text, (size_t)n);
        return;
    }
    int result = listing_read(&call->listing.text, &files, &call->run.over, &e);
    psandbox_listing_clear(call);
    call->listing.done(s, call, result == 0 ? &files : NULL, &e);
}

/* ---- start ---- */

static int listing_fork(struct supervisor *s, struct call *call, bool before, struct err *e)
{
    int fd = -1;
    pid_t pid = side_process_fork(&call->listing.lister, &s->base.channel.loop, listing_on_ready,
                                  call, &fd, e);

    if (pid == 0)
        listing_child(s, call, before, fd);
    call->listing.text = BUF_INIT(LISTING_MAX);
    return pid < 0 ? -1 : 0;
}

void psandbox_list_files(struct supervisor *s, struct call *call, bool before, call_listed *done)
{
    AUTO_SNAPSHOT struct snapshot files = {0};
    struct err e = ERR_INIT;

    const struct disk_mark then = {call->run.before.usage, call->run.before.free};
    struct err why = ERR_INIT;
    struct usage most;

    call->listing.done = done;
    int result = snapshot_take_small(&s->sandbox, SMALL_STEPS, &files, &e);
    if (result == 0 && !before) /* removing takes long */
        result = quota_over(&s->sandbox, &then, &files.usage, &most, &why);
    else if (result == 0)
        result = quota_check_usage(&s->sandbox, &files.usage, 0, &e);
    if (result > 0 && listing_fork(s, call, before, &e) == 0)
        return;
    done(s, call, result == 0 ? &files : NULL, &e);
}
