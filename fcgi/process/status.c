#include "config.h"

#include "fcgi/commands.h"

#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"

#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX  (256u * 1024)
#define MIB       (1024 * 1024)
#define ANSWER_MS 5000

static long long number_of(const json_t *object, const char *name)
{
    return json_get_integer(object, name, 0);
}

static const char *string_of(const json_t *object, const char *name)
{
    const char *s = json_get_string(object, name);

    return s ? s : "";
}

static void status_add_engine(const json_t *status, struct buf *out)
{
    const json_t *engine = json_object_get(status, "engine");
    const char *error = string_of(engine, "trouble");

    buf_addf(out, "engine   %s\n", *error ? error : "ok");
}

static void status_add_runners(const json_t *status, struct buf *out)
{
    const json_t *list = json_object_get(status, "runners");
    size_t n = json_array_size(list);

    buf_addf(out, "runners  %s", n == 0 ? "none" : "");
    for (size_t i = 0; i < n; i++) {
        const json_t *r = json_array_get(list, i);
        const char *version = string_of(r, "version");
        buf_addf(out, "%s%s%s%s", i > 0 ? ", " : "", string_of(r, "language"), *version ? " " : "",
                 version);
    }
    buf_add_char(out, '\n');
}

static void status_add_runs(const json_t *status, struct buf *out)
{
    const json_t *claims = json_object_get(status, "claims");
    const long long hits = number_of(claims, "hit"), all = hits + number_of(claims, "miss");

    buf_addf(out, "runs     %lld of %lld running, %lld of %lld queued\n",
             number_of(status, "running"), number_of(status, "maxRuns"),
             number_of(status, "queued"), number_of(status, "queueMax"));
    buf_addf(out, "         %lld of %lld since the start used a warm container\n", hits, all);
}

static void status_add_age(long long ms, struct buf *out)
{
    if (ms >= 60000)
        buf_addf(out, ", the oldest for %lld min", ms / 60000);
    else if (ms > 0)
        buf_addf(out, ", the oldest for %lld s", ms / 1000);
}

static void status_add_warm(const json_t *pool, struct buf *out)
{
    const json_t *list = json_object_get(pool, "languages");
    size_t n = json_array_size(list);

    if (n == 0)
        buf_add_str(out, "warm     none (SANDBOX_WARM)\n");
    for (size_t i = 0; i < n; i++) {
        const json_t *l = json_array_get(list, i);
        buf_addf(out, "%-8s %s: %lld started, %lld preloaded, %lld starting", i == 0 ? "warm" : "",
                 string_of(l, "language"), number_of(l, "light"), number_of(l, "full"),
                 number_of(l, "starting"));
        status_add_age(number_of(l, "oldestMs"), out);
        buf_addf(out, " (%lld wanted for new conversations)\n",
                 number_of(l, "places") + number_of(l, "extra"));
    }
    if (n > 0)
        buf_addf(out, "         %lld of them for known conversations\n",
                 number_of(pool, "conversations"));
}

static void status_add_memory(const json_t *pool, struct buf *out)
{
    buf_addf(out, "memory   %lld of %lld MB for warm containers\n",
             number_of(pool, "usedBytes") / MIB, number_of(pool, "budgetBytes") / MIB);
    buf_addf(out, "starts   %lld in progress, at most %lld\n", number_of(pool, "starting"),
             number_of(pool, "startsMax"));
}

void status_format(const json_t *status, struct buf *out)
{
    const json_t *pool = json_object_get(status, "pool");

    status_add_engine(status, out);
    status_add_runners(status, out);
    status_add_runs(status, out);
    status_add_warm(pool, out);
    status_add_memory(pool, out);
}

int status_show(const struct settings *s, bool as_json)
{
    const struct broker_client client = {
        .path = s->broker, .cancel_fd = -1, .leave_fd = -1, .limit_ms = ANSWER_MS};
    struct err e = ERR_INIT;
    json_auto_t *status = broker_status(&client, &e);

    if (!status) {
        fprintf(stderr, "sandcgi: the server is not running: %s\n", e.text);
        return 1;
    }
    if (as_json) {
        json_dumpf(status, stdout, JSON_INDENT(2));
        putchar('\n');
        return 0;
    }
    AUTO_BUF struct buf out = BUF_INIT(TEXT_MAX);
    status_format(status, &out);
    fputs(buf_str(&out), stdout);
    return 0;
}
