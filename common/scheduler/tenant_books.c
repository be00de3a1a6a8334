#include "config.h"

#include "common/scheduler/tenant_books.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#define MINUTE_MS 60000
#define DAY_S     86400
#define ISO_LEN   sizeof("2026-01-01T00:00:00Z")

struct book {
    struct book *next;
    int64_t credit;    /* a run costs MINUTE_MS; a millisecond brings runs_per_minute */
    int64_t filled_ms; /* when credit was brought up to date */
    int64_t used_ms;   /* on this day, unsaved_ms included */
    int64_t unsaved_ms;
    int64_t later_ms; /* on later_day */
    bool in_group;    /* a limit of this day was asked about that may not be the tenant's own */
    char tenant[];
};

struct tenant_books {
    const struct tenants *limits;
    struct book *first;
    int64_t day;
    int64_t later_day; /* that the clock has said before it went back; 0: none */
};

struct tenant_books *tenant_books_new(const struct tenants *limits)
{
    struct tenant_books *b = mem_alloc(sizeof *b);

    b->limits = limits;
    return b;
}

void tenant_books_free(struct tenant_books *b)
{
    if (!b)
        return;
    for (struct book *k = b->first, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    free(b);
}

static void fill(struct book *k, uint64_t per_minute, int64_t mono_ms)
{
    const int64_t rate = (int64_t)per_minute, most = rate * MINUTE_MS;
    int64_t passed = mono_ms - k->filled_ms;

    if (passed > MINUTE_MS)
        passed = MINUTE_MS;
    k->credit += passed * rate;
    if (k->credit > most)
        k->credit = most;
    k->filled_ms = mono_ms;
}

/* Books of tenants that have used nothing go. */
static void drop_idle(struct tenant_books *b, int64_t mono_ms)
{
    for (struct book **at = &b->first; *at;) {
        struct book *k = *at;

        if (k->used_ms > 0 || k->later_ms > 0 || k->in_group ||
            mono_ms - k->filled_ms < MINUTE_MS) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        free(k);
    }
}

static struct book *book_of(struct tenant_books *b, const char *tenant, int64_t mono_ms)
{
    struct book *k = b->first;
    const size_t size = strlen(tenant) + 1;

    while (k && strcmp(k->tenant, tenant) != 0)
        k = k->next;
    if (k)
        return k;
    drop_idle(b, mono_ms);
    k = mem_alloc(sizeof *k + size);
    memcpy(k->tenant, tenant, size);
    k->credit = INT64_MAX / 2; /* more than any limit: it begins with all */
    k->filled_ms = mono_ms;
    k->next = b->first;
    b->first = k;
    return k;
}

/* What was used stays used; the latest day's is kept for its return. */
static void turn_back(struct tenant_books *b)
{
    if (b->day <= b->later_day)
        return;
    for (struct book *k = b->first; k; k = k->next)
        k->later_ms = k->used_ms;
    b->later_day = b->day;
}

/* A day begins with nothing used, unless it was there before. */
static void turn_on(struct tenant_books *b, int64_t day)
{
    for (struct book *k = b->first; k; k = k->next) {
        k->used_ms = day == b->later_day ? k->later_ms : 0;
        k->unsaved_ms = 0;
        k->in_group = false;
        if (day >= b->later_day)
            k->later_ms = 0;
    }
    if (day >= b->later_day)
        b->later_day = 0;
}

static void turn_day(struct tenant_books *b, int64_t unix_s)
{
    const int64_t day = unix_s / DAY_S;

    if (day < b->day)
        turn_back(b);
    else if (day > b->day)
        turn_on(b, day);
    b->day = day;
}

static void iso_time(int64_t unix_s, char out[ISO_LEN])
{
    const time_t when = unix_s;
    struct tm tm;

    gmtime_r(&when, &tm);
    strftime(out, ISO_LEN, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static int check_day(const struct tenant_books *b, const struct book *k, uint64_t limit_s,
                     int64_t unix_s, int64_t *out_retry_ms, struct err *e)
{
    const int64_t next_s = (b->day + 1) * DAY_S;
    char until[ISO_LEN];

    if (limit_s == 0 || k->used_ms < (int64_t)limit_s * 1000)
        return 0;
    *out_retry_ms = (next_s - unix_s) * 1000;
    iso_time(next_s, until);
    return err_set(e, ERR_BUSY,
                   "run_seconds_per_day: your programs have run for %" PRId64
                   " s on this day of UTC; the limit is %" PRIu64 " s, until %s",
                   k->used_ms / 1000, limit_s, until);
}

static int take_turn(struct book *k, uint64_t per_minute, struct tenant_now now,
                     int64_t *out_retry_ms, struct err *e)
{
    char until[ISO_LEN];

    if (per_minute == 0)
        return 0;
    fill(k, per_minute, now.mono_ms);
    if (k->credit >= MINUTE_MS) {
        k->credit -= MINUTE_MS;
        return 0;
    }
    int64_t rate = (int64_t)per_minute, ms = (MINUTE_MS - k->credit + rate - 1) / rate;
    *out_retry_ms = ms;
    iso_time(now.unix_s + (ms + 999) / 1000, until);
    return err_set(e, ERR_BUSY,
                   "runs_per_minute: you have begun as many programs as you may; the limit is "
                   "%" PRIu64 " in a minute, the next may begin at %s",
                   per_minute, until);
}

int tenant_books_ask(struct tenant_books *b, const char *tenant, const struct tenant_limits *limits,
                     struct tenant_now now, int64_t *out_retry_ms, struct err *e)
{
    *out_retry_ms = 0;
    if (limits->runs_per_minute == 0 && limits->run_seconds_per_day == 0)
        return 0;
    turn_day(b, now.unix_s);
    struct book *k = book_of(b, tenant, now.mono_ms);
    k->in_group |= limits->run_seconds_per_day > 0 && limits != tenants_find(b->limits, tenant);
    if (check_day(b, k, limits->run_seconds_per_day, now.unix_s, out_retry_ms, e) < 0)
        return -1;
    return take_turn(k, limits->runs_per_minute, now, out_retry_ms, e);
}

static bool counts_days(const struct tenant_books *b, const char *tenant)
{
    const struct book *k = b->first;

    while (k && strcmp(k->tenant, tenant) != 0)
        k = k->next;
    return (k && k->in_group) || tenants_find(b->limits, tenant)->run_seconds_per_day > 0;
}

void tenant_books_note_run(struct tenant_books *b, const char *tenant, int64_t ms,
                           struct tenant_now now)
{
    if (ms <= 0 || !counts_days(b, tenant))
        return;
    turn_day(b, now.unix_s);
    struct book *k = book_of(b, tenant, now.mono_ms);
    k->used_ms += ms;
    k->unsaved_ms += ms;
}

/* ---- what is kept over a restart ---- */

bool tenant_books_changed(const struct tenant_books *b)
{
    const struct book *k = b->first;

    while (k && k->unsaved_ms == 0)
        k = k->next;
    return k != NULL;
}

/* A day of the file that is not over; counts: its time is used on this day. */
static void merge_day(struct tenant_books *b, const json_t *saved, bool counts, int64_t mono_ms)
{
    const int64_t day = json_get_integer(saved, "day", 0);
    const char *tenant;
    json_t *ms;

    if (day > b->day && day > b->later_day) {
        for (struct book *k = b->first; k; k = k->next)
            k->later_ms = 0;
        b->later_day = day;
    }
    json_object_foreach(json_object_get(saved, "ms"), tenant, ms)
    {
        const int64_t used = json_integer_value(ms);
        if (used <= 0 || used > INT64_MAX / 4)
            continue;
        struct book *k = book_of(b, tenant, mono_ms);
        k->in_group |= tenants_find(b->limits, tenant)->run_seconds_per_day == 0;
        if (counts && used + k->unsaved_ms > k->used_ms)
            k->used_ms = used + k->unsaved_ms;
        if (day == b->later_day && used > k->later_ms)
            k->later_ms = used;
    }
}

void tenant_books_merge(struct tenant_books *b, const json_t *saved, struct tenant_now now)
{
    const json_t *later = json_object_get(saved, "later");
    const int64_t later_day = json_get_integer(later, "day", 0);

    turn_day(b, now.unix_s);
    if (json_get_integer(saved, "day", 0) >= b->day) /* above: the clock was set back */
        merge_day(b, saved, true, now.mono_ms);
    if (later_day >= b->day)
        merge_day(b, later, later_day == b->day, now.mono_ms);
}

json_t *tenant_books_encode(const struct tenant_books *b)
{
    json_t *ms = json_object(), *later = json_object();

    for (const struct book *k = b->first; k; k = k->next) {
        if (k->used_ms > 0)
            json_object_set_new(ms, k->tenant, json_integer(k->used_ms));
        if (k->later_ms > 0)
            json_object_set_new(later, k->tenant, json_integer(k->later_ms));
    }
    json_t *books = json_pack("{s:I, s:o}", "day", (json_int_t)b->day, "ms", ms);
    if (b->later_day > 0)
        json_object_set_new(books, "later",
                            json_pack("{s:I, s:O}", "day", (json_int_t)b->later_day, "ms", later));
    json_decref(later);
    return books;
}

void tenant_books_saved(struct tenant_books *b)
{
    for (struct book *k = b->first; k; k = k->next)
        k->unsaved_ms = 0;
}
