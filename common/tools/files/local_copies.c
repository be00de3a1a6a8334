/* copy_file, copy_file_from_sandbox and copy_project: between the client's machine and a
 * conversation's sandbox (stdio only). */
#include "config.h"

#include "common/base/mem.h"
#include "common/mcp/features/tool.h"
#include "common/protocol/client_files.h"
#include "common/rpc/json.h"
#include "common/sandbox/archive/archive.h"
#include "common/sandbox/files/files.h"
#include "common/tools/args.h"
#include "common/tools/files/content.h"
#include "common/tools/files/local.h"
#include "common/tools/list.h"
#include "common/tools/tools_app.h"
#include "common/tools/words.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define ROOTS_KEY    "roots"
#define ROOTS_METHOD "roots/list"

/*
 * The directories that may be used: those of SANDCGI_LOCAL_DIRS, and the client's roots if it has
 * any. 1: they are in *out; 0: the client must be asked first, *need says what; -1: none is allowed
 * (ERR_DENIED).
 */
static int local_allowed(const struct mcp_tool_call *c, struct local_dirs *out,
                         struct mcp_need *need, struct err *e)
{
    const struct tools_app *app = c->app;

    if (app->local_dirs && local_dirs_add(out, app->local_dirs, e) < 0)
        return err_wrap(e, "SANDCGI_LOCAL_DIRS");
    if (mcp_elicitation_possible(c->elicitation, ROOTS_METHOD)) {
        const json_t *answer = mcp_elicitation_response(c->elicitation, ROOTS_KEY);
        if (!answer) {
            mcp_need_add(need, ROOTS_KEY, ROOTS_METHOD, json_object());
            return 0;
        }
        json_t *root;
        for (size_t i = 0; (root = json_array_get(json_object_get(answer, "roots"), i)); i++) {
            const char *uri = json_get_string(root, "uri");
            if (uri)
                local_dirs_add_uri(out, uri);
        }
    }
    if (out->n > 0)
        return 1;
    return err_set(e, ERR_DENIED,
                   "no directory of this machine may be used: neither SANDCGI_LOCAL_DIRS nor the "
                   "client's roots name one");
}

/* ---- copy_file, copy_file_from_sandbox ---- */

struct copy_file {
    const char *conversation;
    const char
        *local; /* absolute path on the user's machine; NULL: in the first allowed directory */
    const char *name; /* in the sandbox; NULL: called as the source */
    bool overwrite;
};

#define OVERWRITE_ROW                                                                              \
    ARG_ROW(struct copy_file, overwrite, "overwrite", ARG_BOOL,                                    \
            .help = "Replace a file that is there already?")

static const struct arg_row copy_in_arguments[] = {
    CONVERSATION_ROW(struct copy_file),
    ARG_ROW(struct copy_file, local, "local_src_file", ARG_STRING, .required = true,
            .max = LOCAL_PATH_MAX,
            .help = "Absolute path of a file on the user's machine, beneath an allowed directory."),
    ARG_ROW(struct copy_file, name, "dest_path", ARG_STRING, .max = FILES_NAME_MAX,
            .help = "Name below /data, folders are made; called as the source when absent."),
    OVERWRITE_ROW,
    {0},
};

static const struct arg_row copy_out_arguments[] = {
    OLD_CONVERSATION_ROW(struct copy_file),
    ARG_ROW(struct copy_file, name, "container_src_path", ARG_STRING, .required = true,
            .max = FILES_NAME_MAX, .help = "Name of a file below /data."),
    ARG_ROW(
        struct copy_file, local, "local_dest_path", ARG_STRING, .max = LOCAL_PATH_MAX,
        .help =
            "Absolute path of the new file on the user's machine; its folder must be there. When "
            "absent, it is put into the first allowed directory."),
    OVERWRITE_ROW,
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
    const struct copy_file *copy = arguments;
    AUTO_LOCAL_DIRS struct local_dirs dirs = {0};
    int allowed = local_allowed(c, &dirs, &out->need, e);
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
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
    out->structured = broker_put_file(&client, copy->conversation, name, fd, (size_t)st.st_size,
                                      copy->overwrite, e);
    if (!out->structured)
        return -1;
    changes_publish_file(&changes, name);
    return 0;
}

static int copy_out(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                    struct err *e)
{
    const struct copy_file *copy = arguments;
    AUTO_LOCAL_DIRS struct local_dirs dirs = {0};
    int allowed = local_allowed(c, &dirs, &out->need, e);
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    struct stat st;

    if (allowed <= 0)
        return allowed;
    AUTO_FREE char *path = copy->local ? mem_strdup(copy->local)
                                       : mem_printf("%s/%s", dirs.paths[0], last_part(copy->name));
    if (files_check_name("container_src_path", copy->name, strlen(copy->name), e) < 0)
        return -1;
    AUTO_FD int fd = broker_open_file(&client, copy->conversation, copy->name, &st, e);
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
    ARGS_TABLE(copy_in_arguments, struct copy_file),
    .output_schema = schema_copy_file,
    .run = copy_in,
};

const struct mcp_tool tool_copy_file_from_sandbox = {
    .name = "copy_file_from_sandbox",
    .title = "Copy a file out",
    .description = "Copies a file of the conversation's sandbox to the user's machine.",
    .reach = MCP_REACH_LOCAL,
    .hints = {.destructive = true, .idempotent = true},
    ARGS_TABLE(copy_out_arguments, struct copy_file),
    .output_schema = schema_copy_file_from_sandbox,
    .run = copy_out,
};

/* ---- copy_project ---- */

static const struct arg_row copy_project_arguments[] = {
    CONVERSATION_ROW(struct copy_file),
    ARG_ROW(
        struct copy_file, local, "local_src_dir", ARG_STRING, .required = true,
        .max = LOCAL_PATH_MAX,
        .help = "Absolute path of a folder on the user's machine, beneath an allowed directory."),
    ARG_ROW(
        struct copy_file, name, "dest_dir", ARG_STRING, .max = FILES_NAME_MAX,
        .help = "Folder of /data that it becomes, \"\" for /data itself; called as the source when "
                "absent."),
    ARG_ROW(
        struct copy_file, overwrite, "overwrite", ARG_BOOL,
        .help = "Replace files that are there already? Else nothing is copied when there is one."),
    {0},
};

/* The last part of the path; the caller frees. */
static char *last_name(const char *path)
{
    size_t len = strlen(path), start;

    while (len > 0 && path[len - 1] == '/')
        len--;
    for (start = len; start > 0 && path[start - 1] != '/';)
        start--;
    return mem_strndup(path + start, len - start);
}

static json_t *pack_and_copy(const struct mcp_tool_call *c, const struct copy_file *copy,
                             int folder, struct err *e)
{
    struct broker_client client = tools_client(c->app, c->tenant, c->cancel_fd);
    const struct sandbox local = {.fd = folder};
    AUTO_FREE char *own = last_name(copy->local);
    const char *dest = copy->name ? copy->name : own;
    /* An unnamed file: on the disk if possible, since a project may be large. */
    int disk = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    AUTO_FD int spool = disk >= 0 ? disk : memfd_create("project", MFD_CLOEXEC);
    const struct pack_sink sink = {.fd = spool};
    struct pack_sum sum;

    if (spool < 0) {
        err_errno(e, "making room for the files");
        return NULL;
    }
    if ((*dest && files_check_name("dest_dir", dest, strlen(dest), e) < 0) ||
        pack_files(&local, NULL, PACK_TAR, &sink, &sum, e) < 0)
        return NULL;
    const struct broker_unpack_want want = {.conversation = copy->conversation,
                                            .archive_fd = spool,
                                            .folder = dest,
                                            .replace = copy->overwrite};
    return broker_unpack(&client, &want, e);
}

static int copy_project(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                        struct err *e)
{
    const struct copy_file *copy = arguments;
    AUTO_LOCAL_DIRS struct local_dirs dirs = {0};
    int allowed = local_allowed(c, &dirs, &out->need, e);

    if (allowed <= 0)
        return allowed;
    AUTO_FD int folder = local_open_folder(&dirs, copy->local, e);
    if (folder < 0)
        return -1;
    out->structured = pack_and_copy(c, copy, folder, e);
    if (!out->structured)
        return -1;
    words_unpacked(out, out->structured);
    report_notices(out->structured, out);
    return 0;
}

const struct mcp_tool tool_copy_project = {
    .name = "copy_project",
    .title = "Copy a local folder in",
    .reach = MCP_REACH_LOCAL,
    .hints = {.destructive = true, .idempotent = true},
    .output_schema = schema_copy_project,
    .description =
        "Copies a folder of the user's machine with all regular files in it (fewer than " TEXT_OF(
            ARCHIVE_FILES_MAX) "; links are left out) into the conversation's sandbox.",
    ARGS_TABLE(copy_project_arguments, struct copy_file),
    .run = copy_project,
};
