/*
 * What all tools work with: the settings, the broker, and the list of runners (languages) that the
 * broker gave, which is kept for a moment so that listing the tools stays cheap.
 */
#pragma once

#include "common/base/buf.h"
#include "common/mcp/features/result.h"
#include "common/protocol/client_runs.h"
#include "common/protocol/limits.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* mcp_server.app. */
struct tools_app {
    const char *broker_path;
    const char *local_dirs; /* SANDCGI_LOCAL_DIRS: absolute paths, separated by commas */
    struct broker_limits limits;
    bool packages;             /* there is a package index */
    bool route_headers;        /* SANDCGI_ROUTE_HEADERS */
    struct tools_cache *cache; /* the runner list; made by tools_app_init */
};

void tools_app_init(struct tools_app *app);
void tools_app_clear(struct tools_app *app);

/* A client of the broker for a call of tenant (NULL: of no tenant) from the connection cancel_fd
 * (-1: cannot be cancelled). */
struct broker_client tools_client(const struct tools_app *app, const char *tenant, int cancel_fd);

/* ---- what the settings (struct tools_app) switch off: mcp_tool.offered, arg_row.listed ---- */

bool tools_have_network(void *app);
bool tools_have_imports(void *app);
bool tools_have_packages(void *app);
bool tools_have_psandboxes(void *app);
bool tools_have_psandbox_images(void *app);
bool tools_have_background(void *app);
bool tools_have_input(void *app);

/* ---- runners ---- */

/* How old the list may be where no call depends on it. With the broker's own delay, a change is
 * seen within 5 s. */
#define RUNNERS_FRESH_MS 2000

/*
 * The list (see broker_runners), not older than max_age_ms; 0 always asks the broker. Borrowed
 * until the next call. NULL with *e when the broker gave none; that, too, is kept.
 */
const json_t *runners_get(const struct tools_app *app, int64_t max_age_ms, struct err *e);

/* mcp_tool.version: grows whenever the list changes. Asks the broker when the list is older than
 * RUNNERS_FRESH_MS. */
uint64_t runners_version(void *app);

/* arg_row.choices: the names of the languages as a new array, NULL when they are not known. */
json_t *runners_languages(const struct tools_app *app, const char *wanted);

bool runners_have(const struct tools_app *app, const char *language);

/* Appends title, and a line for each language with its libraries: when brief with short versions,
 * and the first ones only. Nothing when they are not known. */
void runners_describe(const struct tools_app *app, const char *title, bool brief, struct buf *out);
/* The same of a list, or of a part of it. */
void runners_describe_list(const json_t *runners, const char *title, bool brief, struct buf *out);

/* ---- completion: up to COMPLETE_MAX values that begin with value, as a new array of strings;
 * NULL when there are no suggestions ---- */

#define COMPLETE_MAX 100

json_t *complete_language(const struct tools_app *app, const char *value);
/* Of a file; conversation NULL: of a conversation. */
json_t *complete_name(const struct tools_app *app, const char *tenant, const char *conversation,
                      const char *value);

/* ---- failures and notices as a client sees them ---- */

/*
 * Makes *out a failed result. Texts of errors about the call are kept, since they name the
 * argument; those about the server are replaced by general ones, since they may name paths and
 * sockets.
 */
void report_failure(struct mcp_result *out, const struct err *e);

/* The same in *e, for callers that make the result themselves. */
void report_soften(struct err *e);

/* Adds a sentence at the end of the result: to its text, or to the object's notices. */
void report_note(struct mcp_result *out, const char *sentence);

/* Says that the call was about other files than the conversation's own, if it was. */
void report_stand_in(struct mcp_result *out);

/* Names this node in a list of what a tenant has, which is only what is on it. */
void report_node(struct mcp_result *out);

/* Says each of the result's notices, which are sentences about retention. */
void report_notices(const json_t *result, struct mcp_result *out);
