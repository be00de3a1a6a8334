#include "config.h"

#include "common/sandbox/state/retention.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/sandbox/files/beneath.h"
#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/sizes.h"
#include "common/sandbox/state/state.h"

#include <fcntl.h>
#include <string.h>

#define NEXT_MAX_S 600
#define NEXT_MIN_S 30 /* with many conversations one expires all the time */
#define TOTAL_S    60 /* how often the sum is made */
#define NEXT_PARTS 8  /* of a short ttl_s */

static int compare(const void *a, const void *b)
{
    const struct retention_item *x = a, *y = b;

    if (x->in_use != y->in_use)
        return x->in_use ? 1 : -1;
    if (x->last_used != y->last_used)
        return x->last_used < y->last_used ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool has_expired(const struct retention_item *item, const struct sandbox_bounds *bounds,
                        int64_t slack_s, int64_t now)
{
    return bounds->ttl_s > 0 && now - item->last_used > bounds->ttl_s + slack_s;
}

size_t retention_plan(struct retention *r, const struct sandbox_bounds *bounds, int64_t slack_s,
                      int64_t now)
{
    uint64_t total = r->beside_bytes;
    size_t gone = 0;

    if (r->n > 0)
        qsort(r->items, r->n, sizeof(*r->items), compare);
    while (gone < r->n && !r->items[gone].in_use &&
           has_expired(&r->items[gone], bounds, slack_s, now))
        gone++;
    for (size_t i = gone; i < r->n; i++)
        total += r->items[i].bytes;
    for (; bounds->total_bytes > 0 && gone < r->n && !r->items[gone].in_use &&
           total > bounds->total_bytes;
         gone++)
        total -= r->items[gone].bytes;
    return gone;
}

int64_t retention_next_s(const struct retention *r, size_t n_gone,
                         const struct sandbox_bounds *bounds, int64_t slack_s, int64_t now)
{
    int64_t next = bounds->total_bytes > 0 ? TOTAL_S : NEXT_MAX_S;
    int64_t least = bounds->ttl_s / NEXT_PARTS < NEXT_MIN_S ? bounds->ttl_s / NEXT_PARTS
                                                            : NEXT_MIN_S;

    if (bounds->ttl_s == 0)
        return next;
    /* One that is made in a moment expires no sooner than this. */
    if (bounds->ttl_s + 1 < next)
        next = bounds->ttl_s + 1;
    if (n_gone < r->n && !r->items[n_gone].in_use) {
        int64_t due = r->items[n_gone].last_used + bounds->ttl_s + slack_s + 1 - now;
        if (due < next)
            next = due;
    }
    return next < least ? least > 0 ? least : 1 : next > 0 ? next : 1;
}

int64_t retention_expires_at(const struct sandbox_bounds *bounds, int64_t now)
{
    return bounds->ttl_s > 0 ? now + bounds->ttl_s : 0;
}

/* ---- gathering ---- */

static void add(const struct sandbox_root *root, struct retention *r, size_t *cap, const char *name)
{
    int64_t last_used = state_last_used(root, name);

    if (last_used < 0)
        return;
    if (r->n == *cap) {
        *cap = *cap ? 2 * *cap : 64;
        r->items = mem_resize(r->items, *cap, sizeof(*r->items));
    }
    struct retention_item *item = &r->items[r->n++];
    *item = (struct retention_item){.last_used = last_used};
    memcpy(item->name, name, sizeof(item->name));
    if (root->bounds.total_bytes > 0) {
        item->bytes = sizes_of(root, name);
        item->in_use = sandbox_is_held(root, name);
    }
}

static uint64_t bytes_beside(const struct sandbox_root *root, const char *dir)
{
    struct sandbox all = {
        .root = root, .fd = openat(root->fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    struct err e = ERR_INIT;
    struct usage u = {0};

    if (all.fd >= 0)
        usage_measure(&all, NULL, &u, &e);
    auto_close_fd(&all.fd);
    return u.bytes;
}

int retention_gather(const struct sandbox_root *root, struct retention *out, struct err *e)
{
    AUTO_DIR DIR *dir = beneath_open_dir(root->fd, ".");
    size_t cap = 0;

    *out = (struct retention){0};
    if (!dir)
        return err_errno(e, "SANDBOX_ROOT cannot be listed");
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (state_name_ok(entry->d_name))
            add(root, out, &cap, entry->d_name);
    if (root->bounds.total_bytes > 0)
        out->beside_bytes = bytes_beside(root, ".runs") + bytes_beside(root, SESSIONS_DIR);
    return 0;
}

void retention_clear(struct retention *r)
{
    free(r->items);
    *r = (struct retention){0};
}
