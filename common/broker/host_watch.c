#include "config.h"

#include "common/broker/host_watch.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/remedy.h"
#include "common/sandbox/sandbox.h"
#include "common/sandbox/state/quota.h"

#include <errno.h>
#include <inttypes.h>

/* Logs a trouble that has begun (result -1: e and advice say it all), or is over. */
static void tell(bool *logged, int result, const struct err *e, const char *advice,
                 const char *over)
{
    const bool is_so = result < 0;

    if (is_so && !*logged)
        log_warn("%s; %s", e->text, advice);
    else if (!is_so && *logged)
        log_info("SANDBOX_ROOT: %s", over);
    *logged = is_so;
}

static void look_at_disk(struct host_watch *w, const struct sandbox_root *root)
{
    struct err e = ERR_INIT;
    const int result = quota_check_disk(root->fd, &root->bounds, 0, &e);

    if (result < 0)
        err_wrap(&e, "SANDBOX_ROOT: runs and uploads are refused");
    tell(&w->disk_is_full, result, &e, remedy(e.sys == EROFS ? REMEDY_DISK_WRITABLE : REMEDY_DISK),
         "there is room again");
}

static void look_at_root(struct host_watch *w, const struct sandbox_root *root, gid_t web_gid)
{
    struct err e = ERR_INIT, foreign = ERR_INIT;
    struct stat st;

    if (fstat(root->fd, &st) == 0)
        tell(&w->root_is_open, sandbox_root_check_access(root->path, &st, web_gid, &e), &e,
             "a reload mends it", "its mode is right again");
    tell(&w->root_is_foreign, sandbox_root_check_owner(root->path, &foreign), &foreign, "chown it",
         "its owner is right again");
}

int64_t host_watch_clock(struct host_watch *w, int64_t unix_s, int64_t boot_s)
{
    const int64_t before = w->clock_offset_s, now = unix_s - boot_s;
    const int64_t step = before == 0 ? 0 : now - before;

    w->clock_offset_s = now;
    return step >= HOST_CLOCK_STEP_S || step <= -HOST_CLOCK_STEP_S ? step : 0;
}

/* The clock of a machine that has just started may be one of the past. */
static void look_at_first_clock(const struct sandbox_root *root)
{
    const int64_t now = clock_unix_s();
    struct stat st;

    if (fstat(root->fd, &st) == 0 && st.st_mtime > now + HOST_CLOCK_STEP_S)
        log_warn("clock: SANDBOX_ROOT was changed %" PRId64 " s after what the clock says is now: "
                 "files, links and tokens expire by it; %s",
                 st.st_mtime - now, remedy(REMEDY_CLOCK));
}

void host_watch_look(struct host_watch *w, const struct sandbox_root *root, gid_t web_gid)
{
    if (w->clock_offset_s == 0)
        look_at_first_clock(root);
    const int64_t step = host_watch_clock(w, clock_unix_s(), clock_boot_s());

    if (step != 0)
        log_warn("clock: it was set %s by %" PRId64 " s; is it right now? Files, links and tokens "
                 "expire by it",
                 step > 0 ? "forward" : "back", step > 0 ? step : -step);
    look_at_disk(w, root);
    look_at_root(w, root, web_gid);
}
