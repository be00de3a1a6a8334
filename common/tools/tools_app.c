#include "config.h"

#include "common/tools/tools_app.h"

#include "common/base/auto.h"
#include "common/base/charset.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/node.h"
#include "common/base/remedy.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARIES_SHOWN 11 /* per language, where they are shown briefly */

struct tools_cache {
    bool asked;
    int64_t asked_at_ms;
    json_t *list;          /* NULL: the last question failed */
    struct err last_error; /* why */
    uint64_t version;
};

void tools_app_init(struct tools_app *app)
{
    charset_prepare();
    app->cache = mem_alloc(sizeof *app->cache);
}

void tools_app_clear(struct tools_app *app)
{
    if (app->cache)
        json_decref(app->cache->list);
    free(app->cache);
    app->cache = NULL;
}

struct broker_client tools_client(const struct tools_app *app, const char *tenant, int cancel_fd)
{
    return (struct broker_client){
        .path = app->broker_path, .tenant = tenant, .cancel_fd = cancel_fd, .leave_fd = -1};
}

/* ---- what the settings switch off ---- */

static const struct broker_limits *limits_of(void *app)
{
    return &((const struct tools_app *)app)->limits;
}

bool tools_have_network(void *app)
{
    return limits_of(app)->network != NETWORK_NONE;
}

bool tools_have_imports(void *app)
{
    return limits_of(app)->import;
}

bool tools_have_packages(void *app)
{
    return ((const struct tools_app *)app)->packages;
}

bool tools_have_psandboxes(void *app)
{
    return limits_of(app)->persistent.tenant_max > 0 && limits_of(app)->persistent.server_max > 0;
}

bool tools_have_psandbox_images(void *app)
{
    return limits_of(app)->persistent.images && *limits_of(app)->persistent.images;
}

bool tools_have_background(void *app)
{
    return limits_of(app)->background_max > 0;
}

bool tools_have_input(void *app)
{
    return limits_of(app)->stdin_max > 0;
}

/* ---- runners ---- */

static void runners_ask(const struct tools_app *app)
{
    struct tools_cache *c = app->cache;
    struct broker_client client = tools_client(app, NULL, -1);
    struct err e = ERR_INIT;
    json_t *list = broker_runners(&client, &e);

    if ((list || c->list) && !(list && c->list && json_equal(list, c->list)))
        c->version++;
    json_decref(c->list);
    c->list = list;
    c->last_error = e;
    c->asked = true;
    c->asked_at_ms = clock_mono_ms();
}

const json_t *runners_get(const struct tools_app *app, int64_t max_age_ms, struct err *e)
{
    struct tools_cache *c = app->cache;

    if (!c->asked || max_age_ms <= 0 || clock_mono_ms() - c->asked_at_ms > max_age_ms)
        runners_ask(app);
    if (!c->list)
        *e = c->last_error;
    return c->list;
}

uint64_t runners_version(void *app)
{
    const struct tools_app *a = app;
    struct err e = ERR_INIT;

    runners_get(a, RUNNERS_FRESH_MS, &e);
    return a->cache->version;
}

static bool list_has(const json_t *list, const char *language)
{
    json_t *runner;

    for (size_t i = 0; (runner = json_array_get(list, i)); i++) {
        const char *name = json_get_string(runner, "language");
        if (name && strcmp(name, language) == 0)
            return true;
    }
    return false;
}

bool runners_have(const struct tools_app *app, const char *language)
{
    struct err e = ERR_INIT;

    return list_has(runners_get(app, RUNNERS_FRESH_MS, &e), language);
}

json_t *runners_languages(const struct tools_app *app, const char *wanted)
{
    struct err e = ERR_INIT;
    /* A language in the kept list needs no request: the broker refuses it if it was removed. */
    const json_t *list = wanted && list_has(app->cache->list, wanted)
                             ? app->cache->list
                             : runners_get(app, wanted ? 0 : RUNNERS_FRESH_MS, &e);
    json_t *names;
    json_t *runner;

    if (!list)
        return NULL;
    names = json_array();
    for (size_t i = 0; (runner = json_array_get(list, i)); i++)
        if (json_is_string(json_object_get(runner, "language")))
            json_array_append(names, json_object_get(runner, "language"));
    return names;
}

/* Behind the version where languages are shown briefly. */
static const struct {
    const char *language, *words;
} remarks[] = {
    {"bash", ", no sudo, no apt"},
    {"typescript", ", runs JavaScript too; bash: bun test"},
};

static const char *remark_of(const char *language)
{
    for (size_t i = 0; i < ARRAY_LEN(remarks); i++)
        if (strcmp(remarks[i].language, language) == 0)
            return remarks[i].words;
    return "";
}

/* Of a version its first two numbers tell a model enough. */
static int brief_len(const char *version)
{
    size_t len = strcspn(version, ".");

    return (int)(version[len] ? len + 1 + strspn(version + len + 1, "0123456789") : len);
}

static void runner_describe(const json_t *runner, bool brief, struct buf *out)
{
    const json_t *libraries = json_object_get(runner, "libraries");
    const char *language = json_get_string(runner, "language");
    const char *its = json_get_string(runner, "version");
    const bool commands = language && strcmp(language, "bash") == 0;
    json_t *library;

    buf_addf(out, "\n- %s", language ? language : "?");
    if (its)
        buf_addf(out, " (%.*s%s)", brief ? brief_len(its) : (int)strlen(its), its,
                 brief && language ? remark_of(language) : "");
    for (size_t i = 0; (library = json_array_get(libraries, i)); i++) {
        const char *name = json_get_string(library, "name");
        const char *version = brief && commands ? NULL : json_get_string(library, "version");
        bool more = brief && i == LIBRARIES_SHOWN;

        buf_addf(out, "%s%s", i ? ", " : ": ", more ? "…" : name ? name : "?");
        if (more)
            break;
        if (version && *version)
            buf_addf(out, " %.*s", brief ? brief_len(version) : (int)strlen(version), version);
    }
}

/* In the broker's order, which is sorted: the same images give the same text. */
void runners_describe(const struct tools_app *app, const char *title, bool brief, struct buf *out)
{
    struct err e = ERR_INIT;

    runners_describe_list(runners_get(app, RUNNERS_FRESH_MS, &e), title, brief, out);
}

void runners_describe_list(const json_t *runners, const char *title, bool brief, struct buf *out)
{
    json_t *runner;

    if (json_array_size(runners) > 0)
        buf_add_str(out, title);
    for (size_t i = 0; (runner = json_array_get(runners, i)); i++)
        runner_describe(runner, brief, out);
}

/* ---- completion ---- */

json_t *complete_language(const struct tools_app *app, const char *value)
{
    json_auto_t *languages = runners_languages(app, NULL);
    json_t *found = json_array();
    json_t *language;

    for (size_t i = 0; (language = json_array_get(languages, i)); i++) {
        if (json_array_size(found) < COMPLETE_MAX &&
            strncmp(json_string_value(language), value, strlen(value)) == 0)
            json_array_append(found, language);
    }
    return found;
}

json_t *complete_name(const struct tools_app *app, const char *tenant, const char *conversation,
                      const char *value)
{
    struct broker_client client = tools_client(app, tenant, -1);
    struct err e = ERR_INIT;

    return broker_names(&client, conversation, value, COMPLETE_MAX, &e);
}

/* ---- failures and notices ---- */

static const char *io_text(int sys)
{
    switch (sys) {
    case ENOSPC:
    case EDQUOT:
        return "there is no room left on the server's disk";
    case EROFS:
        return "the server's disk is read-only";
    case EACCES:
        return "the server cannot write to the sandbox's directory";
    default:
        return "the server could not read or write the sandbox's files";
    }
}

static const char *public_text(const struct err *e)
{
    switch (e->kind) {
    case ERR_INVALID:
    case ERR_LIMIT:
    case ERR_NOT_FOUND:
    case ERR_EXISTS:
    case ERR_DENIED:
    case ERR_BUSY:
    case ERR_LOST:
        return e->text;
    case ERR_UNAVAILABLE:
        return "the server's container engine does not answer at the moment";
    case ERR_AWAY:
        return "the server's broker is starting or stopping; nothing of the call has begun: try "
               "again in a moment";
    case ERR_REFUSED:
        return "the server's container engine refused to run this: tell the user";
    case ERR_TIMEOUT:
        return "the server took too long; try again in a while";
    case ERR_CANCELLED:
        return "the call was cancelled";
    case ERR_IO:
        return io_text(e->sys);
    case ERR_PROTOCOL:
    case ERR_INTERNAL:
    case ERR_NONE:
        break;
    }
    return "the server failed to do this: try another way, or tell the user";
}

/* What follows the text; NULL: nothing. */
static const char *mend_of(const struct err *e)
{
    if (e->kind == ERR_UNAVAILABLE)
        return remedy_for(e->sys == EACCES ? REMEDY_ENGINE_OPEN : REMEDY_ENGINE, WAY_MODEL);
    if (e->kind != ERR_LIMIT && e->kind != ERR_IO)
        return NULL;
    return e->sys == EROFS    ? remedy_for(REMEDY_DISK_WRITABLE, WAY_MODEL)
           : e->sys == ENOSPC ? remedy_for(REMEDY_DISK, WAY_MODEL)
                              : NULL;
}

/* The argument that the text begins with, in quotes. */
static void note_reason(const struct err *e)
{
    static const char front[] = "argument '";
    const char *name = e->text + strlen(front);
    const bool named = strncmp(e->text, front, strlen(front)) == 0;
    AUTO_FREE char *argument = named ? mem_strndup(name, strcspn(name, "'")) : NULL;

    log_reason(err_kind_name(e->kind), argument);
}

void report_failure(struct mcp_result *out, const struct err *e)
{
    const char *mend = mend_of(e);

    note_reason(e);
    log_debug("a tool call failed: %s: %s", err_kind_name(e->kind), e->text);
    mcp_result_fail(out, "%s%s%s", public_text(e), mend ? "; " : "", mend ? mend : "");
    out->failure = e->kind;
}

void report_soften(struct err *e)
{
    const char *mend = mend_of(e);

    log_debug("a request failed: %s: %s", err_kind_name(e->kind), e->text);
    err_set(e, e->kind, "%s%s%s", public_text(e), mend ? "; " : "", mend ? mend : "");
}

void report_note(struct mcp_result *out, const char *sentence)
{
    json_t *notices;

    if (!out->structured || out->text.len > 0) { /* else structured is the text */
        mcp_result_say(out, "%s", sentence);
        return;
    }
    notices = json_object_get(out->structured, "notices");
    if (!notices)
        json_object_set_new(out->structured, "notices", notices = json_array());
    json_array_append_new(notices, json_string(sentence));
}

void report_stand_in(struct mcp_result *out)
{
    if (node_stands_in())
        report_note(out, "The machine that has this conversation's files is away. Until it is "
                         "back, the conversation has an empty /data on another machine; what is "
                         "written there is removed then.");
}

void report_node(struct mcp_result *out)
{
    if (*node_name() && out->structured)
        json_object_set_new(out->structured, "node", json_string(node_name()));
}

void report_notices(const json_t *result, struct mcp_result *out)
{
    const json_t *notice;

    for (size_t i = 0; (notice = json_array_get(json_object_get(result, "notices"), i)); i++)
        mcp_result_say(out, "%s", json_string_value(notice));
}
