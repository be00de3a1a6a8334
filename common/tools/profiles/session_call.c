/* How calls of the set "session" begin, and how they are answered. */
#include "config.h"

#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/media.h"
#include "common/tools/profiles/session_call.h"
#include "common/tools/tools_app.h"

#include <stdio.h>
#include <string.h>

#define ID_CHARS      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#define NEW_ID_PREFIX "sess_"
#define NEW_ID_BYTES  6

void session_call_clear(struct session_call *s)
{
    json_decref(s->known);
    s->known = NULL;
}

/* ---- answers ---- */

void session_tell(struct mcp_result *out, json_t *take_model)
{
    adapt_tell_text(out, json_incref(take_model), false);
    out->structured = json_pack("{s:o}", "result", take_model);
    out->text_given = true;
}

void session_fail(struct mcp_result *out, const char *code, const char *message)
{
    session_tell(out, json_pack("{s:s, s:s, s:n, s:n}", "error", code, "message", message,
                                "size_bytes", "download_url"));
}

void session_fail_err(struct mcp_result *out, const struct err *e,
                      const struct session_codes *codes)
{
    const char *const known[] = {
        [ERR_INVALID] = codes->invalid,     [ERR_LIMIT] = codes->limit,
        [ERR_NOT_FOUND] = codes->not_found, [ERR_BUSY] = codes->busy,
        [ERR_EXISTS] = "file_exists",       [ERR_UNAVAILABLE] = "docker_unavailable",
        [ERR_REFUSED] = "docker_error",
    };
    const char *code = e->kind < ARRAY_LEN(known) ? known[e->kind] : NULL;
    struct err told = *e;

    report_soften(&told);
    session_fail(out, code ? code : "execution_failed", told.text);
}

json_t *session_artifact(const char *name, json_int_t size, const char *type, const char *url)
{
    AUTO_FREE char *path = mem_printf(SESSION_FOLDER "%s", name);
    const char *slash = strrchr(name, '/');

    return json_pack("{s:s, s:s, s:I, s:s, s:s?}", "path", path, "filename",
                     slash ? slash + 1 : name, "size_bytes", size, "mime_type",
                     type ? type : media_type(name, NULL, 0), "download_url", url);
}

/* ---- beginning ---- */

/* The code of a wrong argument depends on its name, with which the error's text begins. */
static void fail_argument(const struct session_call *s, const struct err *e)
{
    const struct {
        const char *begin;
        struct session_codes codes;
        const char *way_out; /* appended when it is too large */
    } arguments[] = {
        {"argument 'session_id'", {s->bad_id, s->bad_id, NULL, NULL}, ""},
        {"argument 'filename'", {"invalid_filename", "invalid_filename", NULL, NULL}, ""},
        {"argument 'content_base64'",
         {"invalid_content", "upload_too_large", NULL, NULL},
         "; the server's operator can raise that"},
        {"argument 'path'", {"invalid_path", "invalid_path", NULL, NULL}, ""},
        {"argument 'code'", {NULL, "code_too_large", NULL, NULL}, ""},
        {"", {NULL, NULL, NULL, NULL}, ""},
    };
    struct err told = *e;
    size_t i = 0;

    while (strncmp(e->text, arguments[i].begin, strlen(arguments[i].begin)) != 0)
        i++;
    if (e->kind == ERR_LIMIT)
        err_set(&told, e->kind, "%s%s", e->text, arguments[i].way_out);
    session_fail_err(s->out, &told, &arguments[i].codes);
}

static bool settle_id(struct session_call *s)
{
    const char *given = s->a.session;

    if (!given) {
        char digits[CRYPTO_HEX_LEN(NEW_ID_BYTES)];
        crypto_random_hex(NEW_ID_BYTES, digits);
        snprintf(s->id, sizeof(s->id), NEW_ID_PREFIX "%s", digits);
        return true;
    }
    if (!*given || strlen(given) > SESSION_ID_MAX || given[strspn(given, ID_CHARS)]) {
        session_fail(s->out, s->bad_id, "session_id must be 1 to 64 letters, digits, '_' and '-'");
        return false;
    }
    snprintf(s->id, sizeof(s->id), "%s", given);
    return true;
}

int session_exists(const struct session_call *s, struct err *e)
{
    struct broker_client client = tools_client(s->mcp->app, s->mcp->tenant, s->mcp->cancel_fd);
    const struct broker_listing listing = {.conversation = s->id, .folder = "", .max = 1};
    json_auto_t *page = broker_list_folder(&client, &listing, e);

    if (page)
        return 1;
    return e->kind == ERR_NOT_FOUND ? 0 : -1;
}

static bool check_exists(const struct session_call *s)
{
    static const struct session_codes codes = {0};
    struct err e = ERR_INIT;
    int there = session_exists(s, &e);

    if (there == 0)
        session_fail(s->out, SESSION_ID_UNKNOWN, "there is no session with this session_id");
    else if (there < 0)
        session_fail_err(s->out, &e, &codes);
    return there > 0;
}

bool session_begin(struct session_call *s, const struct arg_row *table, bool must_exist)
{
    struct err e = ERR_INIT;

    if (adapt_fill(table, s->mcp, &s->a, &s->known, &e) < 0) {
        fail_argument(s, &e);
        return false;
    }
    return settle_id(s) && (!must_exist || check_exists(s));
}
