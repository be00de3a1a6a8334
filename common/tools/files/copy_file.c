/* copy_file, copy_file_from_sandbox: one file between the client's machine and a conversation's
 * sandbox (stdio only). */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/files/changes.h"
#include "common/tools/files/local.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

#include <string.h>

struct copy {
    const char *conversation;
    const char *local; /* absolute path on the user's machine; NULL: see dest_of */
    const char *name;  /* in the sandbox; NULL: called as the source */
    bool overwrite;
};

#define ROW_CONVERSATION                                                                           \
    {                                                                                              \
        .name = "conversationId", .type = ARG_IDENTIFIER,                                          \
        .offset = offsetof(struct copy, conversation), .required = true, .max = CONVERSATION_MAX,  \
        .help = CONVERSATION_HELP                                                                  \
    }
#define ROW_OVERWRITE                                                                              \
    {                                                                                              \
        .name = "overwrite", .type = ARG_BOOL, .offset = offsetof(struct copy, overwrite),         \
        .help = "Replace a file that is there already?"                                            \
    }

static const struct arg_row in_arguments[] = {
    ROW_CONVERSATION,
    {.name = "local_src_file",
     .type = ARG_STRING,
     .offset = offsetof(struct copy, local),
     .required = true,
     .max = LOCAL_PATH_MAX,
     .help = "Absolute path of a file on the user's machine, beneath an allowed directory."},
    {.name = "dest_path",
     .type = ARG_STRING,
     .offset = offsetof(struct copy, name),
     .max = FILES_NAME_MAX,
     .help = "Name below /data, folders are made; called as the source when absent."},
    ROW_OVERWRITE,
    {0},
};

static const struct arg_row out_arguments[] = {
    ROW_CONVERSATION,
    {.name = "container_src_path",
     .type = ARG_STRING,
     .offset = offsetof(struct copy, name),
     .required = true,
     .max = FILES_NAME_MAX,
     .help = "Name of a file below /data."},
    {.name = "local_dest_path",
     .type = ARG_STRING,
     .offset = offsetof(struct copy, local),
     .max = LOCAL_PATH_MAX,
     .help = "Absolute path of the new file on the user's machine; its folder must be there. When "
             "absent, it is put into the first allowed directory."},
    ROW_OVERWRITE,
    {0},
};

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static int copy_in(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                   struct err *e)
{
    const struct copy *copy = arguments;
    AUTO_LOCAL_DIRS struct local_dirs dirs = LOCAL_DIRS_INIT;
    int allowed = local_allowed(c, &dirs, &out->need, e);
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    const struct changes changes = {c->server, c->tenant, copy->conversation};
    const char *name = copy->name ? copy->name : last_part(copy->local);
    struct stat st;

    if (allowed <= 0)
        return allowed;
    if (files_check_name("dest_path", name, strlen(name), e) < 0)
        return -1;
    AUTO_FD int fd = local_open_file(&dirs, copy->local, &st, e);
    if (fd < 0)
        return -1;
    out->structured = broker_put_file(&client, c->tenant, copy->conversation, name, fd,
                                      (size_t)st.st_size, copy->overwrite, e);
    if (!out->structured)
        return -1;
    changes_tell_file(&changes, name);
    return 0;
}

static int copy_out(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                    struct err *e)
{
    const struct copy *copy = arguments;
    AUTO_LOCAL_DIRS struct local_dirs dirs = LOCAL_DIRS_INIT;
    int allowed = local_allowed(c, &dirs, &out->need, e);
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    struct stat st;

    if (allowed <= 0)
        return allowed;
    AUTO_FREE char *path = copy->local ? mem_strdup(copy->local)
                                       : mem_printf("%s/%s", dirs.paths[0], last_part(copy->name));
    if (files_check_name("container_src_path", copy->name, strlen(copy->name), e) < 0)
        return -1;
    AUTO_FD int fd = broker_open_file(&client, c->tenant, copy->conversation, copy->name, &st, e);
    if (fd < 0 || local_put_file(&dirs, path, fd, (uint64_t)st.st_size, copy->overwrite, e) < 0)
        return -1;
    out->structured = json_pack("{s:s, s:I}", "path", path, "size", (json_int_t)st.st_size);
    return 0;
}

const struct mcp_tool tool_copy_file = {
    .name = "copy_file",
    .title = "Copy a local file in",
    .description = "Copies a file of the user's machine into the conversation's sandbox.",
    .reach = MCP_REACH_LOCAL,
    .hints = {.destructive = true, .idempotent = true},
    .arguments = in_arguments,
    .arguments_size = sizeof(struct copy),
    .output_schema = schema_copy_file,
    .run = copy_in,
};

const struct mcp_tool tool_copy_file_from_sandbox = {
    .name = "copy_file_from_sandbox",
    .title = "Copy a file out",
    .description = "Copies a file of the conversation's sandbox to the user's machine.",
    .reach = MCP_REACH_LOCAL,
    .hints = {.destructive = true, .idempotent = true},
    .arguments = out_arguments,
    .arguments_size = sizeof(struct copy),
    .output_schema = schema_copy_file_from_sandbox,
    .run = copy_out,
};
