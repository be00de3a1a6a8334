#include "config.h"

#include "fcgi/commands.h"

#include "common/base/remedy.h"
#include "common/protocol/client_runs.h"
#include "common/rpc/json.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX     (256u * 1024)
#define MIB          (1024 * 1024)
#define ANSWER_MS    5000
#define WATCH_MS     2000
#define CLEAR_SCREEN "\x1b[H\x1b[2J"

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

static void add_age(struct buf *out, json_int_t seconds)
{
    static const struct {
        json_int_t seconds;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    size_t i = 0;

    while (i + 1 < ARRAY_LEN(units) && seconds < 2 * units[i].seconds)
        i++;
    buf_addf(out, "%lld %s", (long long)(seconds / units[i].seconds), units[i].name);
}

static void add_warm(const json_t *pool, struct buf *out)
{
    const json_t *list = json_object_get(pool, "images");
    size_t n = json_array_size(list);

    if (n == 0) {
        buf_add_str(out, "warm     none (SANDBOX_WARM)\n");
        return;
    }
    buf_add_str(out, "warm     started preloaded starting wanted  oldest  image\n");
    for (size_t i = 0; i < n; i++) {
        const json_t *l = json_array_get(list, i);
        buf_addf(out, "         %7lld %9lld %8lld %6lld  ",
                 (long long)json_get_integer(l, "started", 0),
                 (long long)json_get_integer(l, "preloaded", 0),
                 (long long)json_get_integer(l, "starting", 0),
                 (long long)json_get_integer(l, "places", 0));
        add_age(out, json_get_integer(l, "oldestMs", 0) / 1000);
        buf_addf(out, "  %s\n", string_of(l, "image"));
    }
    add_line(out, pool, "         {conversations} of them for known conversations\n");
    buf_add_str(out, "         started: the interpreter runs; preloaded: with its libraries;\n"
                     "         wanted: for new conversations (SANDBOX_WARM)\n");
}

static void add_server(const json_t *status, struct buf *out)
{
    const char *version = string_of(status, "version");

    if (!*version)
        return;
    buf_addf(out, "server   version %s, up for ", version);
    add_age(out, json_get_integer(status, "uptimeS", 0));
    buf_add_char(out, '\n');
}

/* What all of it takes now, the engine and the web server apart. */
static void add_memory(const json_t *memory, struct buf *out)
{
    const char *purpose, *before = "         in use: ";
    const json_t *bytes;

    json_object_foreach((json_t *)(uintptr_t)memory, purpose, bytes)
    {
        buf_addf(out, "%s%s %lld", before, purpose, (long long)json_integer_value(bytes) / MIB);
        before = ", ";
    }
    if (json_object_size(memory) > 0)
        buf_add_str(out, " MB\n");
}

static void add_disk(const json_t *status, struct buf *out)
{
    const json_t *disk = json_object_get(status, "disk");

    if (!disk)
        return;
    add_line(out, disk, "disk     {freeBytes:MB} of {sizeBytes:MB} MB free, ");
    if (json_get_integer(disk, "limitBytes", 0) > 0) /* else their size is not counted */
        add_line(out, disk, "{usedBytes:MB} of {limitBytes:MB} MB taken by ");
    add_line(out, disk, "{conversations} conversations");
    add_line(out, status, ", {keptResults} kept results\n");
}

static void add_store(const json_t *status, struct buf *out)
{
    const json_t *store = json_object_get(status, "store");

    if (store)
        add_line(out, store,
                 json_get_integer(store, "waiting", 0) > 0
                     ? "store    {waiting} conversations are to be copied, the first for "
                       "{lagSeconds} s\n"
                     : "store    has all files\n");
}

static void add_limits(const json_t *status, struct buf *out)
{
    const json_t *limits = json_object_get(status, "limits");
    const char *error = string_of(limits, "lastError");
    bool hold = json_is_true(json_object_get(limits, "hold"));

    if (limits)
        buf_addf(out, "limits   %s\n",
                 hold     ? "of memory and processes hold"
                 : *error ? error
                          : "not tried (SANDBOX_LIMITS_CHECK, or just started)");
}

static void add_errors(const json_t *list, struct buf *out)
{
    size_t n = json_array_size(list);

    for (size_t i = 0; i < n; i++)
        buf_addf(out, "%-9s%s\n", i == 0 ? "log" : "", json_string_value(json_array_get(list, i)));
}

void status_format(const json_t *status, struct buf *out)
{
    const json_t *pool = json_object_get(status, "pool");
    const json_int_t warm = json_get_integer(status, "warmRuns", 0);
    const char *error = string_of(json_object_get(status, "engine"), "lastError");
    const json_t *network = json_object_get(status, "network");
    const char *no_network = string_of(network, "lastError");

    add_server(status, out);
    buf_addf(out, "engine   %s\n", *error ? error : "ok");
    add_limits(status, out);
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
    add_line(out, pool, "memory   {usedBytes:MB} of {budgetBytes:MB} MB for warm containers\n");
    add_memory(json_object_get(status, "memory"), out);
    add_line(out, pool, "starts   {starting} in progress, at most {startsMax}\n");
    add_disk(status, out);
    add_store(status, out);
    add_errors(json_object_get(status, "lastErrors"), out);
}

/* Returns the exit status. 1: there is none; the reason is on standard error. */
static int show_once(const struct broker_client *client, const char *config_path, bool as_json,
                     const char *before)
{
    AUTO_BUF struct buf out = BUF_INIT(TEXT_MAX);
    struct err e = ERR_INIT;
    json_auto_t *status = broker_status(client, &e);

    if (!status) {
        const bool ends = e.kind == ERR_LOST; /* it took the question, and went away */
        fprintf(stderr, "sandcgi: the server%s%s %s%s; to start it: %s\n",
                config_path ? " of " : "", config_path ? config_path : "",
                ends ? "is stopping" : "is not running: ", ends ? "" : e.text,
                remedy(REMEDY_START));
        return 1;
    }
    if (as_json) {
        json_dumpf(status, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        status_format(status, &out);
        printf("%s%s", before, buf_str(&out));
    }
    return *string_of(json_object_get(status, "engine"), "lastError") ? STATUS_NO_ENGINE : 0;
}

int status_show(const struct settings *s, const char *config_path, bool as_json, bool watch)
{
    const struct broker_client client = {
        .path = s->broker, .cancel_fd = -1, .leave_fd = -1, .limit_ms = ANSWER_MS};

    if (!watch)
        return show_once(&client, config_path, as_json, "");
    for (;;) { /* until a signal, or the reader's end */
        show_once(&client, config_path, as_json, as_json ? "" : CLEAR_SCREEN);
        if (fflush(stdout) == EOF)
            return 1;
        poll(NULL, 0, WATCH_MS);
    }
}
