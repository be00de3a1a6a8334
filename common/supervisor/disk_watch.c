#include "config.h"

#include "common/supervisor/disk_watch.h"

#include "common/base/auto.h"
#include "common/base/fdio.h"
#include "common/base/log.h"
#include "common/sandbox/state/quota.h"
#include "common/supervisor/held.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define STEP_BYTES (4u << 20) /* less is not worth a count */
#define STEP_FILES 1000u
#define COUNT_PART 5 /* a count takes at most this part of the time */

/* What the child writes, in one piece. */
struct answer {
    struct usage used;
    size_t seen;
    bool unexplained; /* the reserve is broken, and what its programs hold cannot all be counted */
    struct err over;
};

/* ---- the count ---- */

static bool reserve_is_broken(const struct sandbox *sb)
{
    struct err e = ERR_INIT;

    return quota_check_disk(sb->root->fd, &sb->root->bounds, 0, &e) < 0;
}

static int count(const struct sandbox *sb, const struct snapshot *then, struct answer *a,
                 struct err *e)
{
    const struct disk_mark mark = {then->usage, then->free};
    struct usage most;

    if (quota_measure(sb, &a->used, e) < 0)
        return -1;
    const struct held held = held_measure(sb);
    a->seen = held.seen;
    a->used.bytes += held.files.bytes;
    a->used.files += held.files.files;
    a->unexplained = held.in_flight > 0 && reserve_is_broken(sb);
    if (quota_over(sb, &mark, &a->used, &most, &a->over) && held.files.bytes > a->used.bytes / 2)
        err_wrap(&a->over, "its programs keep %" PRIu64 " deleted files of %.1f MiB open",
                 held.files.files, (double)held.files.bytes / (1 << 20));
    return 0;
}

static _Noreturn void count_child(const struct disk_watch *w, int fd)
{
    struct err e = ERR_INIT;
    struct answer a;

    memset(&a, 0, sizeof a); /* its padding is written, too */
    if (count(w->sandbox, &w->then, &a, &e) < 0 || fdio_write_all(fd, &a, sizeof a, &e) < 0)
        log_warn("what a sandbox takes on the disk is not known: %s", e.text);
    _exit(0);
}

/* Descriptors are on their way for a moment in many programs. Those that are there at one count and
 * the next, while the reserve is broken, may hold files that no count has found. */
static void note_unexplained(struct disk_watch *w, bool unexplained)
{
    const bool again = w->unexplained && unexplained;

    w->unexplained = unexplained;
    w->count |= unexplained;
    if (again && w->over.kind == ERR_NONE)
        err_set(&w->over, ERR_LIMIT,
                "the server's disk is nearly full (SANDBOX_DISK_RESERVE), and its programs keep "
                "descriptors in sockets, whose files cannot be counted");
}

static void count_on_ready(void *owner, void *item, uint32_t events)
{
    struct disk_watch *w = item;
    int64_t took_ms = clock_mono_ms() - w->began_ms;
    struct answer a;

    (void)owner;
    (void)events;
    bool whole = read(w->counter.fd, &a, sizeof a) == (ssize_t)sizeof a;
    side_process_end(&w->counter);
    w->next = deadline_in_ms(took_ms * COUNT_PART > DISK_LEAST_MS ? took_ms * COUNT_PART
                                                                  : DISK_LEAST_MS);
    if (!whole)
        return;
    w->over = a.over;
    note_unexplained(w, a.unexplained);
    if (a.seen == 0 && !w->unseen) {
        log_warn("the processes of a sandbox are not seen here: deleted files that they keep open "
                 "are not counted");
        w->unseen = true;
    }
    if (w->over.kind != ERR_NONE)
        return;
    snapshot_take_empty(w->sandbox, &w->then);
    w->then.usage = a.used;
}

static int count_begin(struct disk_watch *w, struct err *e)
{
    int fd = -1;
    pid_t pid = side_process_fork(&w->counter, w->loop, count_on_ready, w, &fd, e);

    if (pid == 0)
        count_child(w, fd);
    w->began_ms = clock_mono_ms();
    return pid < 0 ? -1 : 0;
}

/* ---- looks ---- */

/* What the sandbox may still take by its bound, as the last count has it. */
static uint64_t room_below(uint64_t bound, uint64_t used)
{
    return bound == 0 ? UINT64_MAX : bound > used ? bound - used : 0;
}

/* Did the disk lose so much that it may be what the bound leaves? */
static bool may_pass(uint64_t bound, uint64_t reserve, uint64_t used, uint64_t free_then,
                     uint64_t free, uint64_t step)
{
    uint64_t room = room_below(bound, used);

    if (reserve > 0 && free <= reserve)
        room = 0;
    return free_then > free && free_then - free >= (room > step ? room : step);
}

/* At this pace half of the room is gone by then. */
int64_t disk_watch_pause_ms(uint64_t room, uint64_t lost, int64_t took_ms)
{
    if (lost < STEP_BYTES || took_ms <= 0)
        return DISK_LOOK_MS;
    const double ms = (double)room / 2 / (double)lost * (double)took_ms;
    return ms >= DISK_LOOK_MS ? DISK_LOOK_MS : ms <= DISK_LEAST_MS ? DISK_LEAST_MS : (int64_t)ms;
}

/* What the disk has left until a count is due. */
static uint64_t room_left(const struct disk_watch *w, uint64_t left)
{
    const uint64_t reserve = w->sandbox->root->bounds.reserve;
    const uint64_t below = room_below(quota_bytes(w->sandbox), w->then.usage.bytes);
    const uint64_t gone = w->free.bytes > left ? w->free.bytes - left : 0;
    const uint64_t above = left > reserve ? left - reserve : 0;
    const uint64_t rest = below > gone ? below - gone : 0;

    return rest < above ? rest : above;
}

static void set_next_look(struct disk_watch *w)
{
    const uint64_t left = disk_free_on(w->sandbox->fd).bytes;
    const int64_t now_ms = clock_mono_ms();

    w->next = deadline_in_ms(disk_watch_pause_ms(
        room_left(w, left), w->left > left ? w->left - left : 0, now_ms - w->looked_ms));
    w->left = left;
    w->looked_ms = now_ms;
}

static bool needs_count(struct disk_watch *w)
{
    const struct sandbox_bounds *b = &w->sandbox->root->bounds;
    const uint64_t bytes = quota_bytes(w->sandbox);
    const struct usage free = disk_free_on(w->sandbox->fd), *used = &w->then.usage;

    if (free.bytes > w->free.bytes)
        w->free.bytes = free.bytes;
    if (free.files > w->free.files)
        w->free.files = free.files;
    return w->count ||
           may_pass(bytes, b->reserve, used->bytes, w->free.bytes, free.bytes, STEP_BYTES) ||
           may_pass(b->files, b->reserve_files, used->files, w->free.files, free.files, STEP_FILES);
}

void disk_watch_begin(struct disk_watch *w, struct loop *loop, const struct sandbox *sandbox,
                      const struct snapshot *before)
{
    *w = (struct disk_watch){.loop = loop,
                             .sandbox = sandbox,
                             .then = *before,
                             .free = before->free,
                             .left = disk_free_on(sandbox->fd).bytes,
                             .looked_ms = clock_mono_ms(),
                             .next = deadline_in_ms(DISK_LEAST_MS)};
    w->then.items = NULL;
    w->then.n = 0;
}

struct deadline disk_watch_tick(struct disk_watch *w)
{
    struct err e = ERR_INIT;

    if (!w->sandbox || w->counter.pid > 0)
        return DEADLINE_NEVER;
    if (!deadline_passed(w->next))
        return w->next;
    set_next_look(w);
    if (!needs_count(w))
        return w->next;
    if (count_begin(w, &e) < 0)
        log_warn("what a sandbox takes on the disk is not known: %s", e.text);
    w->count = false;
    w->free = disk_free_on(w->sandbox->fd);
    return w->counter.pid > 0 ? DEADLINE_NEVER : w->next;
}

void disk_watch_again(struct disk_watch *w)
{
    w->over = (struct err)ERR_INIT;
    w->unexplained = false;
    w->count = true;
}

void disk_watch_end(struct disk_watch *w)
{
    side_process_end(&w->counter);
    w->sandbox = NULL;
}
