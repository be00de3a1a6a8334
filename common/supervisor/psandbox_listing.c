/* The files of a persistent sandbox, before and after a call. A small directory is listed at once;
 * a child process lists what takes longer and writes the result to a pipe that the loop reads. */
#include "config.h"

#include "common/supervisor/psandbox_self.h"

#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/privsep.h"
#include "common/records/retention_notice.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/state/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define SMALL_STEPS 256 /* directory entries that are listed at once */
#define LISTING_MAX                                                                                \
    (sizeof(struct header) +                                                                       \
     SNAPSHOT_ENTRIES_MAX * (sizeof(struct snapshot_entry) + FILES_NAME_MAX + 1))

/* What the child writes: this, and files.n times an entry and its name with the NUL. Pointers in
 * them mean nothing. */
struct header {
    bool ok;
    struct err e;
    struct snapshot files;
};

static int list(const struct psandbox *s, bool before, struct snapshot *out, struct err *e)
{
    return before ? retention_notice_before(&s->sandbox, out, e)
                  : snapshot_take(&s->sandbox, out, e);
}

/* ---- the child ---- */

static _Noreturn void listing_child(const struct psandbox *s, bool before, int fd)
{
    AUTO_BUF struct buf text = BUF_INIT(LISTING_MAX);
    struct header h = {0};
    struct err e = ERR_INIT;

    h.ok = list(s, before, &h.files, &h.e) == 0;
    buf_add(&text, &h, sizeof h);
    for (size_t i = 0; i < h.files.n; i++) {
        const struct snapshot_entry *entry = &h.files.items[i];

        buf_add(&text, entry, sizeof *entry);
        buf_add(&text, entry->name, strlen(entry->name) + 1);
    }
    _exit(buf_ok(&text) && fdio_write_all(fd, text.data, text.len, &e) == 0 ? 0 : 1);
}

/* ---- its result ---- */

static bool listing_read_entry(struct snapshot *out, const char **at, const char *end)
{
    struct snapshot_entry entry;

    if ((size_t)(end - *at) < sizeof entry)
        return false;
    memcpy(&entry, *at, sizeof entry);
    *at += sizeof entry;
    const char *nul = memchr(*at, '\0', (size_t)(end - *at));
    if (!nul)
        return false;
    entry.name = mem_strndup(*at, (size_t)(nul - *at));
    *at = nul + 1;
    out->items[out->n++] = entry;
    return true;
}

static int listing_read(const struct buf *text, struct snapshot *out, struct err *e)
{
    struct header h = {.ok = false};

    if (buf_ok(text) && text->len >= sizeof h)
        memcpy(&h, text->data, sizeof h);
    if (h.e.kind != ERR_NONE) {
        *e = h.e;
        return -1;
    }
    if (h.ok && h.files.n <= SNAPSHOT_ENTRIES_MAX) {
        const char *at = text->data + sizeof h, *end = text->data + text->len;

        *out = h.files;
        out->items = mem_array(h.files.n + 1, sizeof *out->items);
        out->n = 0;
        while (out->n < h.files.n && listing_read_entry(out, &at, end))
            ;
        if (out->n == h.files.n)
            return 0;
        snapshot_clear(out);
    }
    return err_set(e, ERR_INTERNAL, "the process that lists the sandbox's files died");
}

void psandbox_listing_clear(struct psandbox *s, struct psandbox_call *call)
{
    if (call->listing.pid <= 0)
        return;
    kill(call->listing.pid, SIGKILL);
    waitpid(call->listing.pid, NULL, 0);
    call->listing.pid = 0;
    loop_remove(&s->base.channel.loop, &call->listing.watch);
    auto_close_fd(&call->listing.fd);
    buf_clear(&call->listing.text);
}

static void listing_on_ready(void *owner, void *item, uint32_t events)
{
    AUTO_SNAPSHOT struct snapshot files = SNAPSHOT_INIT;
    struct psandbox *s = owner;
    struct psandbox_call *call = item;
    struct err e = ERR_INIT;
    char *room = buf_reserve(&call->listing.text, 1 << 16);

    (void)events;
    ssize_t n = room ? read(call->listing.fd, room, 1 << 16) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        buf_grew(&call->listing.text, (size_t)n);
        return;
    }
    int result = listing_read(&call->listing.text, &files, &e);
    psandbox_listing_clear(s, call);
    call->listing.done(s, call, result == 0 ? &files : NULL, &e);
}

/* ---- start ---- */

static int listing_fork(struct psandbox *s, struct psandbox_call *call, bool before, struct err *e)
{
    pid_t parent = getpid();
    int pair[2];

    if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
        return err_errno(e, "pipe2");
    AUTO_FD int ours = pair[0];
    AUTO_FD int theirs = pair[1];
    if (loop_add(&s->base.channel.loop, &call->listing.watch, ours, EPOLLIN, listing_on_ready, call,
                 e) < 0)
        return -1;
    call->listing.pid = fork();
    if (call->listing.pid == 0) {
        privsep_die_with(parent);
        listing_child(s, before, theirs);
    }
    if (call->listing.pid < 0) {
        err_errno(e, "fork");
        loop_remove(&s->base.channel.loop, &call->listing.watch);
        return -1;
    }
    call->listing.fd = TAKE_FD(ours);
    call->listing.text = (struct buf)BUF_INIT(LISTING_MAX);
    return 0;
}

void psandbox_list_files(struct psandbox *s, struct psandbox_call *call, bool before,
                         psandbox_listed *done)
{
    AUTO_SNAPSHOT struct snapshot files = SNAPSHOT_INIT;
    struct err e = ERR_INIT;

    call->listing.done = done;
    int result = snapshot_take_small(&s->sandbox, SMALL_STEPS, &files, &e);
    if (result == 0 && before)
        result = quota_check_usage(&s->sandbox, &files.usage, 0, &e);
    else if (result > 0 && listing_fork(s, call, before, &e) == 0)
        return;
    done(s, call, result == 0 ? &files : NULL, &e);
}
