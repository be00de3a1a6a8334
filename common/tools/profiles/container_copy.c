/* copy_project, copy_file and copy_file_from_sandbox of the set "container": between the client's
 * own machine and a container, so on standard input and output only. */
#include "config.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/tools/list.h"
#include "common/tools/profiles/container.h"

#include <limits.h>
#include <string.h>
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
    PATH_ROW(dest_dir, "dest_dir", false, "Folder that it becomes; /app/<name> when absent"),
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
    PATH_ROW(file_name, "local_dest_path", false, "File on your machine; ./<name> when absent"),
    {0},
};

/* One of ours, and what its arguments are called there: file_name is the client's path, dest_dir
 * the container's. */
struct copy {
    const struct mcp_tool *tool;
    const char *local, *inside;
};

/* In the order of container_copy_tools. */
static const struct copy copies[CONTAINER_COPY_TOOLS] = {
    {&tool_copy_project, "local_src_dir", "dest_dir"},
    {&tool_copy_file, "local_src_file", "dest_path"},
    {&tool_copy_file_from_sandbox, "local_dest_path", "container_src_path"},
};
static const struct copy *const out_of = &copies[2];

/* Takes ".", ".." and empty parts out of an absolute path. */
static void normalise(char *path)
{
    char *end = path; /* of what stays */

    for (const char *part = path; *part;) {
        size_t len = strcspn(part, "/");
        const char *next = part + len + (part[len] == '/');

        if (len == 2 && memcmp(part, "..", 2) == 0) {
            while (end > path && *--end != '/')
                continue;
        } else if (len > 0 && !(len == 1 && part[0] == '.')) {
            *end++ = '/';
            memmove(end, part, len);
            end += len;
        }
        part = next;
    }
    if (end == path)
        *end++ = '/';
    *end = '\0';
}

char *container_local_path(const char *path)
{
    char folder[PATH_MAX];
    char *absolute;

    if (!path || !*path)
        return NULL;
    if (path[0] == '/')
        absolute = mem_strdup(path);
    else if (getcwd(folder, sizeof(folder)))
        absolute = mem_printf("%s/%s", folder, path);
    else
        return mem_strdup(path); /* which ours refuse */
    normalise(absolute);
    return absolute;
}

/* What a copy is about, as ours take it: absolute where it is local, below /app in the container.
 */
struct paths {
    const char *conversation, *local, *inside;
};

/* *out_local: where ours says the file is now on the client's machine, heap; NULL when it is not
 * there. */
static int call_ours(const struct container_call *s, const struct copy *copy,
                     const struct paths *paths, char **out_local, struct err *e)
{
    AUTO_MCP_RESULT struct mcp_result inner = MCP_RESULT_INIT;
    json_t *copied;
    const char *path;

    if (adapt_call(s->mcp, copy->tool,
                   json_pack("{s:s, s:s?, s:s?, s:b}", "conversationId", paths->conversation,
                             copy->local, paths->local, copy->inside, paths->inside, "overwrite",
                             1),
                   &inner, s->out, &copied, e) < 0)
        return -1;
    path = json_get_string(copied, "path");
    *out_local = path ? mem_strdup(path) : NULL;
    return 0;
}

/* To where the server was started, as there, should that be allowed; else to where ours would put
 * it. */
static int copy_here(const struct container_call *s, struct paths *paths, char **out_local,
                     struct err *e)
{
    const char *slash = strrchr(paths->inside, '/');
    AUTO_FREE char *here = container_local_path(slash ? slash + 1 : paths->inside);

    paths->local = here;
    if (call_ours(s, out_of, paths, out_local, e) == 0)
        return 0;
    if (e->kind != ERR_DENIED)
        return -1;
    *e = (struct err)ERR_INIT;
    paths->local = NULL;
    return call_ours(s, out_of, paths, out_local, e);
}

static int copy_files(const struct container_call *s, const struct copy *copy, char **out_local,
                      struct err *e)
{
    AUTO_FREE char *conversation = container_conversation(s, e);
    AUTO_FREE char *local = container_local_path(s->a.file_name);
    AUTO_FREE char *inside = NULL;

    if (!conversation)
        return -1;
    if (s->a.dest_dir && !(inside = container_file_name(NULL, s->a.dest_dir, e)))
        return -1;
    struct paths paths = {conversation, local, inside};
    return copy == out_of && !local ? copy_here(s, &paths, out_local, e)
                                    : call_ours(s, copy, &paths, out_local, e);
}

static void copy_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    const struct copy *copy = &copies[c->tool - container_copy_tools];
    AUTO_CONTAINER_CALL struct container_call s = {.mcp = c, .out = out};
    AUTO_FREE char *local = NULL;
    struct err e = ERR_INIT;

    if (!container_begin(&s, c->tool->arguments))
        return;
    if (copy_files(&s, copy, &local, &e) < 0) {
        if (e.kind != ERR_NONE) /* else the client is asked for its roots first */
            container_fail(out, &e);
    } else if (local) {
        adapt_tell(out, "Successfully copied %s from container %s to %s", s.a.dest_dir,
                   s.a.container, local);
    } else {
        adapt_tell(out, "Successfully copied %s to container %s", s.a.file_name, s.a.container);
    }
}

#define ROW(title, table, text)                                                                    \
    {                                                                                              \
        .name = (title), .reach = MCP_REACH_LOCAL, .hints = {.destructive = true},                 \
        .description = (text), .arguments = (table), .call = copy_tool                             \
    }

const struct mcp_tool container_copy_tools[CONTAINER_COPY_TOOLS] = {
    ROW("copy_project", project_arguments,
        "Copy a directory of your machine to the sandboxed filesystem."),
    ROW("copy_file", in_arguments,
        "Copy a single file of your machine to the sandboxed filesystem."),
    ROW("copy_file_from_sandbox", out_arguments,
        "Copy a single file from the sandboxed filesystem to your machine."),
};
