/* copy_project, copy_file and copy_file_from_sandbox of the set "container": between the client's
 * own machine and a container, so on standard input and output only. */
#include "config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/tools/list.h"
#include "common/tools/profiles/container.h"

#include <limits.h>
#include <unistd.h>

#define PATH_ROW(member, text, must, what)                                                         \
    {                                                                                              \
        .name = (text), .type = ARG_STRING,                                                        \
        .offset = offsetof(struct container_arguments, member), .required = (must),                \
        .max = PATH_MAX, .help = (what)                                                            \
    }

static const struct arg_row project_arguments[] = {
    CONTAINER_ID_ROW,
    PATH_ROW(file_name, "local_src_dir", true, "Folder on your machine"),
    PATH_ROW(dest_dir, "dest_dir", false, "Folder in the container; /app/<name> when absent"),
    {0},
};
static const struct arg_row in_arguments[] = {
    CONTAINER_ID_ROW,
    PATH_ROW(file_name, "local_src_file", true, "File on your machine"),
    PATH_ROW(dest_dir, "dest_path", false, "File in the container; /app/<name> when absent"),
    {0},
};
static const struct arg_row out_arguments[] = {
    CONTAINER_ID_ROW,
    PATH_ROW(dest_dir, "container_src_path", true, "File in the container"),
    PATH_ROW(file_name, "local_dest_path", false, "File on your machine; its name when absent"),
    {0},
};

/* One of ours, and what its arguments are called there: file_name is the client's path, dest_dir
 * the container's. */
struct copy {
    const struct mcp_tool *tool;
    const struct arg_row *table;
    const char *local, *inside;
};

static const struct copy project = {&tool_copy_project, project_arguments, "local_src_dir",
                                    "dest_dir"};
static const struct copy in = {&tool_copy_file, in_arguments, "local_src_file", "dest_path"};
static const struct copy out_of = {&tool_copy_file_from_sandbox, out_arguments, "local_dest_path",
                                   "container_src_path"};

/* Ours take absolute paths; theirs begin where the server was started. Heap or NULL. */
static char *local_path(const char *path)
{
    char folder[PATH_MAX];

    if (!path || !*path)
        return NULL;
    if (path[0] == '/' || !getcwd(folder, sizeof(folder)))
        return mem_strdup(path);
    return mem_printf("%s/%s", folder, path);
}

static int copy_files(const struct container_call *s, const struct copy *copy, struct err *e)
{
    AUTO_MCP_RESULT struct mcp_result inner = MCP_RESULT_INIT;
    AUTO_FREE char *conversation = container_conversation(s, e);
    AUTO_FREE char *local = local_path(s->a.file_name);
    AUTO_FREE char *name = NULL;
    json_t *copied;

    if (!conversation)
        return -1;
    if (s->a.dest_dir && !(name = container_file_name(NULL, s->a.dest_dir, e)))
        return -1;
    return adapt_call(s->mcp, copy->tool,
                      json_pack("{s:s, s:s?, s:s?, s:b}", "conversationId", conversation,
                                copy->local, local, copy->inside, name, "overwrite", 1),
                      &inner, s->out, &copied, e);
}

static void call_copy(const struct mcp_tool_call *c, struct mcp_result *out,
                      const struct copy *copy)
{
    AUTO_CONTAINER_CALL struct container_call s = {.mcp = c, .out = out};
    struct err e = ERR_INIT;

    if (!container_begin(&s, copy->table))
        return;
    if (copy_files(&s, copy, &e) == 0)
        adapt_tell(out, "Successfully copied %s %s container %s",
                   copy == &out_of ? s.a.dest_dir : s.a.file_name, copy == &out_of ? "from" : "to",
                   s.a.container);
    else if (e.kind != ERR_NONE) /* else the client is asked for its roots first */
        container_fail(out, &e);
}

#define COPY(copy, text)                                                                           \
    static char *describe_##copy(void *app)                                                        \
    {                                                                                              \
        (void)app;                                                                                 \
        return mem_strdup(text);                                                                   \
    }                                                                                              \
    static json_t *schema_##copy(void *app)                                                        \
    {                                                                                              \
        return args_schema((copy).table, app);                                                     \
    }                                                                                              \
    static void call_##copy(const struct mcp_tool_call *c, struct mcp_result *out)                 \
    {                                                                                              \
        call_copy(c, out, &(copy));                                                                \
    }

COPY(project, "Copy a directory of your machine to the sandboxed filesystem.")
COPY(in, "Copy a single file of your machine to the sandboxed filesystem.")
COPY(out_of, "Copy a single file from the sandboxed filesystem to your machine.")

#define ROW(title, copy)                                                                           \
    {                                                                                              \
        .name = (title), .reach = MCP_REACH_LOCAL, .hints = {.destructive = true},                 \
        .describe = describe_##copy, .input_schema = schema_##copy, .call = call_##copy            \
    }

const struct mcp_tool container_copy_tools[CONTAINER_COPY_TOOLS] = {
    ROW("copy_project", project),
    ROW("copy_file", in),
    ROW("copy_file_from_sandbox", out_of),
};
