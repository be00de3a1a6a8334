/* Tells those who listen that files of a sandbox changed. */
#ifndef SANDCGI_TOOLS_FILES_CHANGES_H
#define SANDCGI_TOOLS_FILES_CHANGES_H

#include "common/mcp/features/tool.h"
#include "common/protocol/client_runs.h"

/* Whose files changed, and how it is told. */
struct changes {
    const struct mcp_server *server; /* its publish is used */
    const char *tenant, *conversation;
};

/* files: an array of objects with the member name, as in broker_run's result; empty or NULL:
 * nothing happened. */
void changes_tell(const struct changes *c, const json_t *files);

/* One file. */
void changes_tell_file(const struct changes *c, const char *name);

/* All of them are gone. */
void changes_tell_gone(const struct changes *c);

#define CHANGES_FOLDER_MAX 1000 /* files of a folder that are told one by one */

/*
 * The files in a folder that is about to go or has just come, as changes_tell takes them; empty
 * when it is no folder. New reference.
 */
json_t *changes_in_folder(const struct changes *c, const struct broker_client *client,
                          const char *folder);

#endif
