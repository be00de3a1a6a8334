/*
 * The tools: one file each (run_code.c, get_run.c, upload_file.c …), one list (tools.c). A
 * tool's argument table makes its JSON schema, validates the call and fills the C struct, so that
 * the three cannot drift apart (args.h).
 */
#ifndef SANDCGI_TOOLS_TOOLS_H
#define SANDCGI_TOOLS_TOOLS_H

#include "common/mcp/features/prompt.h"
#include "common/mcp/features/resource.h"
#include "common/mcp/features/task.h"
#include "common/mcp/features/tool.h"
#include "common/protocol/client_runs.h"

#include <stdint.h>

/* Limits on what a client may send and what it gets back; from the settings. */
struct tools_limits {
    uint64_t code_max; /* bytes */
    uint64_t stdin_max;
    uint64_t file_max;      /* decoded */
    uint64_t env_max;       /* all names and values together */
    uint64_t upload_max;    /* of a file that does not pass through a call */
    uint64_t upload_ttl_ms; /* of the link it comes by */
    uint64_t timeout_max_ms;
    uint64_t timeout_ms; /* default; for the description */
    uint64_t wait_ms; /* how long an answer takes at most, unless asked otherwise; 0: to the end */
    uint64_t wait_max_ms;        /* what may be asked for */
    uint64_t persistent_idle_ms; /* of persistent sandboxes: as the settings of these names say */
    uint64_t persistent_pause_ms;
    uint64_t persistent_total_ms;
    uint64_t image_max;  /* bytes of one inline picture */
    uint64_t images_max; /* how many of them per result */
    bool network;        /* may a caller ask for it at all? */
    bool import;         /* may URLs be fetched? */
    bool network_ask;    /* only when its user agrees, each time? */
};

/* What mcp_server.app points to. */
struct tools_app {
    const char *broker_path;
    const char *local_dirs; /* what those tools may use: absolute paths, separated by commas */
    struct tools_limits limits;
    struct tools_cache *cache; /* of the runner list; made by tools_app_init */
};

void tools_app_init(struct tools_app *app);
void tools_app_clear(struct tools_app *app);

/* All tools in the order of tools/list; *n of them. */
const struct mcp_tool *const *tools_all(size_t *n);
/* The runs as tasks of clients that have the extension (run_tasks.c). */
extern const struct mcp_tasks tools_tasks;
/* All prompts in the order of prompts/list; *n of them (prompts.c). */
const struct mcp_prompt *const *tools_prompts(size_t *n);
/* The files of the sandboxes (resources.c). */
extern const struct mcp_resources tools_resources;

#endif
