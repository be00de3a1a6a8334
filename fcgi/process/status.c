#include "config.h"

#include "fcgi/commands.h"

#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX  (256u * 1024)
#define MIB       (1024 * 1024)
#define ANSWER_MS 5000

static const char *string_of(const json_t *object, const char *name)
{
    const char *s = json_get_string(object, name);

    return s ? s : "";
}

/* Adds text with the object's numbers in place of {name}, or {name:MB}. */
static void add_line(struct buf *out, const json_t *object, const char *text)
{
    for (const char *s = text; *s; s++) {
        char name[32];
        size_t len = strcspn(s + 1, ":}");

        if (*s != '{') {
            buf_add_char(out, *s);
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)len, s + 1);
        buf_addf(out, "%lld",
                 (long long)json_get_integer(object, name, 0) / (s[len + 1] == ':' ? MIB : 1));
        s = strchr(s, '}');
    }
}

static void add_runners(const json_t *list, struct buf *out)
{
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

static void add_warm(const json_t *pool, struct buf *out)
{
    const json_t *list = json_object_get(pool, "languages");
    size_t n = json_array_size(list);

    for (size_t i = 0; i < n; i++) {
        const json_t *l = json_array_get(list, i);
        const json_int_t age_ms = json_get_integer(l, "oldestMs", 0);
        buf_addf(out, "%-8s %s", i == 0 ? "warm" : "", string_of(l, "language"));
        add_line(out, l, ": {started} started, {preloaded} preloaded, {starting} starting");
        if (age_ms > 0)
            buf_addf(out, ", the oldest for %lld %s", age_ms / (age_ms >= 60000 ? 60000 : 1000),
                     age_ms >= 60000 ? "min" : "s");
        buf_addf(out, " (%lld wanted for new conversations)\n",
                 (long long)(json_get_integer(l, "places", 0) + json_get_integer(l, "extra", 0)));
    }
    add_line(out, pool,
             n > 0 ? "         {conversations} of them for known conversations\n"
                   : "warm     none (SANDBOX_WARM)\n");
}

void status_format(const json_t *status, struct buf *out)
{
    const json_t *pool = json_object_get(status, "pool");
    const json_int_t warm = json_get_integer(status, "warmRuns", 0);
    const char *error = string_of(json_object_get(status, "engine"), "lastError");
    const json_t *network = json_object_get(status, "network");
    const char *no_network = string_of(network, "lastError");

    buf_addf(out, "engine   %s\n", *error ? error : "ok");
    add_runners(json_object_get(status, "runners"), out);
    buf_addf(out, "network  %s%s%s\n", string_of(network, "limit"),
             *no_network ? ": refused: " : "", no_network);
    add_line(out, status,
             "runs     {running} of {maxRuns} running, {queued} of {queueMax} queued\n");
    buf_addf(out, "         %lld of %lld since the start used a warm container\n", (long long)warm,
             (long long)(warm + json_get_integer(status, "coldRuns", 0)));
    add_line(out, status,
             json_is_true(json_object_get(pool, "reuse"))
                 ? "         {reusedRuns} in one that had served their conversation"
                 : "         each in a container of its own (SANDBOX_REUSE)\n");
    if (json_is_true(json_object_get(pool, "reuse")))
        add_line(out, pool, ", {doubted} containers could not be wiped\n");
    add_warm(pool, out);
    add_line(out, pool,
             "memory   {usedBytes:MB} of {budgetBytes:MB} MB for warm containers\n"
             "starts   {starting} in progress, at most {startsMax}\n");
}

int status_show(const struct settings *s, bool as_json)
{
    const struct broker_client client = {
        .path = s->broker, .cancel_fd = -1, .leave_fd = -1, .limit_ms = ANSWER_MS};
    AUTO_BUF struct buf out = BUF_INIT(TEXT_MAX);
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
    status_format(status, &out);
    fputs(buf_str(&out), stdout);
    return 0;
}
