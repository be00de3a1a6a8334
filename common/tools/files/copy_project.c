/* copy_project: a folder of the client's machine into a conversation's sandbox (stdio only). */
#include "config.h"

#include "common/base/mem.h"
#include "common/protocol/client_files.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/files/local.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/schemas.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

struct copy {
    const char *conversation;
    const char *source;
    const char *dest;
    bool overwrite;
};

static const struct arg_row copy_project_arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct copy, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = CONVERSATION_HELP},
    {.name = "local_src_dir",
     .type = ARG_STRING,
     .offset = offsetof(struct copy, source),
     .required = true,
     .max = LOCAL_PATH_MAX,
     .help = "Absolute path of a folder on the user's machine, beneath an allowed directory."},
    {.name = "dest_dir",
     .type = ARG_STRING,
     .offset = offsetof(struct copy, dest),
     .max = FILES_NAME_MAX,
     .help = "Folder of /data that it becomes, \"\" for /data itself; called as the source when "
             "absent."},
    {.name = "overwrite",
     .type = ARG_BOOL,
     .offset = offsetof(struct copy, overwrite),
     .help = "Replace files that are there already? Else nothing is copied when there is one."},
    {0},
};

static char *describe(void *app)
{
    (void)app;
    return mem_printf("Copies a folder of the user's machine with all regular files in it (at most "
                      "%d; links are left out) into the conversation's sandbox.",
                      ARCHIVE_FILES_MAX - 1);
}

/* A file without a name, on the disk where that can be had: a project may be large. */
static int open_spool(struct err *e)
{
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        fd = memfd_create("project", MFD_CLOEXEC);
    return fd < 0 ? err_errno(e, "making room for the files") : fd;
}

/* The last part of the path; the caller frees. */
static char *name_of(const char *path)
{
    size_t len = strlen(path), start;

    while (len > 0 && path[len - 1] == '/')
        len--;
    for (start = len; start > 0 && path[start - 1] != '/';)
        start--;
    return mem_strndup(path + start, len - start);
}

static json_t *copy_from(const struct mcp_tool_call *c, const struct copy *copy, int folder,
                         struct err *e)
{
    struct broker_client client = tools_client(c->app, c->cancel_fd);
    const struct sandbox local = {.fd = folder};
    AUTO_FREE char *own = name_of(copy->source);
    const char *dest = copy->dest ? copy->dest : own;
    AUTO_FD int spool = open_spool(e);
    const struct pack_sink sink = {.fd = spool};
    struct pack_sum sum;

    if (spool < 0 || (*dest && files_check_name("dest_dir", dest, strlen(dest), e) < 0) ||
        pack_files(&local, "", PACK_TAR, &sink, &sum, e) < 0)
        return NULL;
    const struct broker_unpack_want want = {.tenant = c->tenant,
                                            .conversation = copy->conversation,
                                            .archive_fd = spool,
                                            .folder = dest,
                                            .replace = copy->overwrite};
    return broker_unpack(&client, &want, e);
}

static int copy_project(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                        struct err *e)
{
    const struct copy *copy = arguments;
    AUTO_LOCAL_DIRS struct local_dirs dirs = LOCAL_DIRS_INIT;
    int allowed = local_allowed(c, &dirs, &out->need, e);

    if (allowed <= 0)
        return allowed;
    AUTO_FD int folder = local_open_folder(&dirs, copy->source, e);
    if (folder < 0)
        return -1;
    out->structured = copy_from(c, copy, folder, e);
    if (!out->structured)
        return -1;
    report_notices(out->structured, out);
    return 0;
}

const struct mcp_tool tool_copy_project = {
    .name = "copy_project",
    .title = "Copy a local folder in",
    .reach = MCP_REACH_LOCAL,
    .hints = {.destructive = true, .idempotent = true},
    .output_schema = schema_copy_project,
    .describe = describe,
    .arguments = copy_project_arguments,
    .arguments_size = sizeof(struct copy),
    .run = copy_project,
};
