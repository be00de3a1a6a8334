/* Events for clients that listen: files of a sandbox changed. */
#ifndef SANDCGI_TOOLS_FILES_CHANGES_H
#define SANDCGI_TOOLS_FILES_CHANGES_H

#include "common/mcp/features/tool.h"
#include "common/protocol/client_runs.h"

/* Whose files changed. */
struct changes {
    const struct mcp_server *server; /* for mcp_publish */
    const char *tenant, *conversation;
};

/* files: an array of objects with the member name, as in broker_run's result; empty or NULL:
 * no event. */
void changes_publish(const struct changes *c, const json_t *files);

/* One file. */
void changes_publish_file(const struct changes *c, const char *name);

/* All files of the conversation are gone. */
void changes_publish_list(const struct changes *c);

#define CHANGES_FOLDER_MAX 1000 /* files of a folder that have an event each */

/*
 * The files of a folder that is about to be removed or was just made, as changes_publish takes
 * them; empty when it is not a folder. New reference.
 */
json_t *changes_in_folder(const struct changes *c, const struct broker_client *client,
                          const char *folder);

#endif
