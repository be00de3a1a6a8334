/*
 * The runners (languages) as the broker tells them, remembered for a moment so that listing the
 * tools stays cheap.
 */
#ifndef SANDCGI_TOOLS_BROKER_ACCESS_H
#define SANDCGI_TOOLS_BROKER_ACCESS_H

#include "common/tools/tools.h"

#include <stdbool.h>

/* How old a remembered list may be where nobody waits for news; with the broker's own delay below 5
 * s. */
#define RUNNERS_FRESH_MS 2000

struct tools_cache *runners_cache_new(void);
void runners_cache_free(struct tools_cache *c);

/*
 * The list (see broker_runners) not older than max_age_ms; 0 asks the broker. Borrowed until the
 * next call. NULL with *e when it cannot be had; that, too, is remembered.
 */
const json_t *runners_get(const struct tools_app *app, int64_t max_age_ms, struct err *e);

/* mcp_tool.version: grows whenever the list changes. Looks for news when what is remembered is
 * older than RUNNERS_FRESH_MS. */
uint64_t runners_version(void *app);

/* The names of the languages as a new array, NULL when they are not known. See args.h: choices. */
json_t *runners_languages(const struct tools_app *app, const char *wanted);

bool runners_have(const struct tools_app *app, const char *language);

/* A client of the broker for a call from the connection cancel_fd. */
struct broker_client tools_client(const struct tools_app *app, int cancel_fd);

#endif
