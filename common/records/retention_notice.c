#include "config.h"

#include "common/records/retention_notice.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/retention.h"
#include "common/sandbox/state/state.h"

#include <time.h>

static void add_notice(json_t *result, const char *text)
{
    json_t *notices = json_object_get(result, "notices");

    if (!notices) {
        notices = json_array();
        json_object_set_new(result, "notices", notices);
    }
    json_array_append_new(notices, json_string(text));
}

void retention_notice_expiry(const struct sandbox *sb, json_t *result)
{
    int64_t when = retention_expires_at(&sb->root->bounds, clock_unix_s());

    if (when > 0)
        json_object_set_new(result, "filesExpireAt", json_integer(when));
}

void retention_notice_expired(const struct sandbox *sb, json_t *result)
{
    time_t when = state_take_expired(sb->root, sb->name);
    char day[32] = "";
    struct tm tm;

    if (when == 0)
        return;
    if (gmtime_r(&when, &tm))
        strftime(day, sizeof day, "%Y-%m-%d %H:%M", &tm);
    AUTO_FREE char *text = mem_printf("The files that this conversation had before have expired "
                                      "and were removed (%s UTC).",
                                      day);
    add_notice(result, text);
}

void retention_notice_owner(const struct sandbox *sb, json_t *result)
{
    retention_notice_expiry(sb, result);
    retention_notice_expired(sb, result);
}

int retention_notice_before(const struct sandbox *sb, struct snapshot *out, struct err *e)
{
    if (snapshot_take(sb, out, e) < 0)
        return -1;
    /* The listing has counted it, unless there is more than it lists. */
    return out->usage.partial ? quota_check(sb, 0, e) : quota_check_usage(sb, &out->usage, 0, e);
}

void retention_notice_after(const struct sandbox *sb, const struct snapshot *after, json_t *result)
{
    struct err e = ERR_INIT;

    retention_notice_expiry(sb, result);
    if (after->usage.partial || !quota_exceeded(sb->root, &after->usage, &e))
        return;
    AUTO_FREE char *text = mem_printf("The next run or upload will be refused: %s.", e.text);
    add_notice(result, text);
}
