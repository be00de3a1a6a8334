/* The set "container": its tools. The copying ones work on the client's own machine, so they are
 * offered on standard input and output only. */
#include "config.h"

#include "common/base/crypto.h"
#include "common/base/mem.h"
#include "common/mcp/features/content.h"
#include "common/rpc/json.h"
#include "common/tools/list.h"
#include "common/tools/profiles/container_call.h"
#include "common/tools/runs/permit.h"
#include "common/tools/tools_app.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define PATH_ROW(member, text, must, what)                                                         \
    ARG_ROW(struct container_arguments, member, text, ARG_STRING, .required = (must),              \
            .max = PATH_MAX, .help = (what))

static const struct arg_row copy_project_arguments[] = {
    CONTAINER_ID_ROW,
    PATH_ROW(file_name, "local_src_dir", true, "Folder on your machine"),
    PATH_ROW(dest_dir, "dest_dir", false, "Folder that it becomes; /app/<name> when absent"),
    {0},
};
static const struct arg_row copy_in_arguments[] = {
    CONTAINER_ID_ROW,
    PATH_ROW(file_name, "local_src_file", true, "File on your machine"),
    PATH_ROW(dest_dir, "dest_path", false, "File in the container; /app/<name> when absent"),
    {0},
};
static const struct arg_row copy_out_arguments[] = {
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

#define COPY_TOOLS 3
static const struct mcp_tool copy_tools[COPY_TOOLS];

/* In the order of copy_tools. */
static const struct copy copies[COPY_TOOLS] = {
    {&tool_copy_project, "local_src_dir", "dest_dir"},
    {&tool_copy_file, "local_src_file", "dest_path"},
    {&tool_copy_file_from_sandbox, "local_dest_path", "container_src_path"},
};
static const struct copy *const copy_out = &copies[2];

/* The arguments of a copy for our tools: local is absolute, inside is below /app. */
struct copy_paths {
    const char *conversation, *local, *inside;
};

/* *out_local: the path on the client's machine that our tool returned, heap; NULL: none. */
static int copy_by_ours(const struct container_call *s, const struct copy *copy,
                        const struct copy_paths *paths, char **out_local, struct err *e)
{
    AUTO_MCP_RESULT struct mcp_result inner = {0};
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

/* Into the directory in which the server was started, if that is allowed; else to the default of
 * our tool. */
static int copy_here(const struct container_call *s, struct copy_paths *paths, char **out_local,
                     struct err *e)
{
    const char *slash = strrchr(paths->inside, '/');
    AUTO_FREE char *here = container_local_path(slash ? slash + 1 : paths->inside);

    paths->local = here;
    if (copy_by_ours(s, copy_out, paths, out_local, e) == 0)
        return 0;
    if (e->kind != ERR_DENIED)
        return -1;
    *e = ERR_INIT;
    paths->local = NULL;
    return copy_by_ours(s, copy_out, paths, out_local, e);
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
    struct copy_paths paths = {conversation, local, inside};
    return copy == copy_out && !local ? copy_here(s, &paths, out_local, e)
                                      : copy_by_ours(s, copy, &paths, out_local, e);
}

static void copy_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    const struct copy *copy = &copies[c->tool - copy_tools];
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

#define COPY_TOOL(title, table, text)                                                              \
    {                                                                                              \
        .name = (title), .reach = MCP_REACH_LOCAL, .hints = {.destructive = true},                 \
        .description = (text), .arguments = (table), .call = copy_tool                             \
    }

static const struct mcp_tool copy_tools[COPY_TOOLS] = {
    COPY_TOOL("copy_project", copy_project_arguments,
              "Copy a directory of your machine to the sandboxed filesystem."),
    COPY_TOOL("copy_file", copy_in_arguments,
              "Copy a single file of your machine to the sandboxed filesystem."),
    COPY_TOOL("copy_file_from_sandbox", copy_out_arguments,
              "Copy a single file from the sandboxed filesystem to your machine."),
};

#define DEFAULT_IMAGE      "python:3.12-slim-bookworm"
#define CONVERSATION_BYTES 12
#define COMMANDS_BYTES     (1024 * 1024)
#define COMMANDS_MAX       500
#define STOP_TIMEOUT_MS    10000
#define EXEC_TEXT_MAX      (128u * 1024 * 1024)

static const struct arg_row initialize_arguments[] = {
    ARG_ROW(struct container_arguments, image, "image", ARG_STRING, .max = 4096,
            .initial = DEFAULT_IMAGE,
            .help = "Image of the environment; " DEFAULT_IMAGE
                    " when absent. This server's own Python "
                    "environment stands in for python images, its TypeScript one for node images."),
    {0},
};

static const struct arg_row write_arguments[] = {
    CONTAINER_ID_ROW,
    PATH_ROW(file_name, "file_name", true, "Name of the file"),
    ARG_ROW(struct container_arguments, contents, "file_contents", ARG_TEXT, .required = true,
            .max_setting = ARG_SETTING(file_max), .help = "Contents of the file"),
    PATH_ROW(dest_dir, "dest_dir", false, "Folder of the file, " CONTAINER_FOLDER " when absent"),
    {0},
};

static const struct arg_row exec_arguments[] = {
    CONTAINER_ID_ROW,
    ARG_ROW(
        struct container_arguments, commands, "commands", ARG_LIST, .required = true,
        .max = COMMANDS_BYTES, .max_items = COMMANDS_MAX,
        .help = "List of command(s) to run in the sandboxed environment. Example: [\"pip install "
                "-r requirements.txt\", \"python main.py\"]"),
    {0},
};

static const struct arg_row stop_arguments[] = {CONTAINER_ID_ROW, {0}};

/* ---- sandbox_initialize ---- */

/* The runner that stands in for a well-known image; NULL: the operator's list decides. */
static const char *language_of(const char *image)
{
    static const struct {
        const char *repository, *language;
    } known[] = {{"python", "python"}, {"node", "typescript"}, {"oven/bun", "typescript"}};
    size_t len = strcspn(image, ":@");

    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strlen(known[i].repository) == len && memcmp(image, known[i].repository, len) == 0)
            return known[i].language;
    return NULL;
}

/* The caller did not ask for the network: where it is refused, there is none. */
static json_t *create_connected(const struct broker_client *client,
                                struct broker_psandbox_request want, struct err *e)
{
    json_t *psandbox = broker_create_psandbox(client, &want, e);

    if (psandbox || want.network == NETWORK_NONE || e->kind != ERR_DENIED)
        return psandbox;
    want.network = NETWORK_NONE;
    return broker_create_psandbox(client, &want, e);
}

/* Takes the image if the operator allows it; else a runner may stand in for it. */
static json_t *create_psandbox(const struct mcp_tool_call *c, const char *image, struct err *e)
{
    const struct tools_app *app = c->app;
    struct broker_client client = tools_client(app, c->tenant, c->cancel_fd);
    char digits[CRYPTO_HEX_LEN(CONVERSATION_BYTES)];
    struct broker_psandbox_request want = {
        .image = image,
        .alias = CONTAINER_FOLDER,
    };
    struct err none = ERR_INIT; /* then it has none: the caller did not ask for it */

    permit_network(c, !app->limits.network_ask, &want.network, &none);

    crypto_random_hex(CONVERSATION_BYTES, digits);
    AUTO_FREE char *conversation = mem_printf("container-%s", digits);
    want.conversation = conversation;
    json_t *psandbox = create_connected(&client, want, e);
    if (psandbox || (e->kind != ERR_DENIED && e->kind != ERR_NOT_FOUND) || !language_of(image))
        return psandbox;
    want.image = NULL;
    want.language = language_of(image);
    return create_connected(&client, want, e);
}

static void initialize(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_CONTAINER_CALL struct container_call s = {.mcp = c, .out = out};
    char id[CONTAINER_ID_LEN + 1];
    struct err e = ERR_INIT;

    if (!container_begin(&s, initialize_arguments))
        return;
    json_auto_t *psandbox = create_psandbox(c, s.a.image && *s.a.image ? s.a.image : DEFAULT_IMAGE,
                                            &e);
    const char *psandbox_id = json_get_string(psandbox, "sandboxId");
    if (psandbox && container_id_of(c->tenant, psandbox_id ? psandbox_id : "", id, &e) == 0)
        adapt_tell(out, "container_id: %s", id);
    else
        container_fail(out, &e);
}

/* ---- write_file_sandbox ---- */

static int write_file(const struct container_call *s, struct err *e)
{
    AUTO_MCP_RESULT struct mcp_result inner = {0};
    AUTO_FREE char *conversation = container_conversation(s, e);
    AUTO_FREE char *name = conversation ? container_file_name(s->a.dest_dir, s->a.file_name, e)
                                        : NULL;
    json_t *written;

    if (!name)
        return -1;
    return adapt_call(s->mcp, &tool_write_file,
                      json_pack("{s:s, s:s, s:O, s:b}", "conversationId", conversation, "filename",
                                name, "text", json_object_get(s->known, "file_contents"),
                                "overwrite", 1),
                      &inner, s->out, &written, e);
}

static void write_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_CONTAINER_CALL struct container_call s = {.mcp = c, .out = out};
    struct err e = ERR_INIT;

    if (!container_begin(&s, write_arguments))
        return;
    if (write_file(&s, &e) == 0)
        adapt_tell(out, "Successfully wrote file %s to container %s", s.a.file_name, s.a.container);
    else
        container_fail(out, &e);
}

/* ---- sandbox_exec ---- */

/* Runs up to PSANDBOX_COMMANDS_MAX commands from number first on; *more: are there others to run?
 */
static int exec_some(const struct container_call *s, size_t first, struct buf *text, bool *more,
                     struct err *e)
{
    const struct tools_app *app = s->mcp->app;
    const json_t *all = json_object_get(s->known, "commands");
    json_t *commands = json_array(), *object, *result;
    AUTO_MCP_RESULT struct mcp_result inner = {0};
    size_t i;

    for (i = first; i < s->a.commands.n && i < first + PSANDBOX_COMMANDS_MAX; i++)
        json_array_append(commands, json_array_get(all, i)); /* shared, never changed */
    if (adapt_call(s->mcp, &tool_exec,
                   json_pack("{s:s, s:o, s:s, s:I}", "sandboxId", s->psandbox, "commands", commands,
                             "cwd", CONTAINER_FOLDER, "timeoutMs",
                             (json_int_t)app->limits.timeout_max_ms),
                   &inner, s->out, &object, e) < 0)
        return -1;
    *more = i < s->a.commands.n && json_is_true(json_object_get(object, "success"));
    for (size_t n = 0; (result = json_array_get(json_object_get(object, "results"), n)); n++)
        container_add_command(result, text);
    return 0;
}

/* A bare string is one command. */
static json_t *with_list(const json_t *arguments)
{
    json_t *copy = json_copy((json_t *)arguments);
    json_t *commands = json_object_get(copy, "commands");

    if (json_is_string(commands))
        json_object_set_new(copy, "commands", json_pack("[O]", commands));
    return copy;
}

static void exec_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    json_auto_t *arguments = with_list(c->arguments);
    struct mcp_tool_call call = *c;
    AUTO_CONTAINER_CALL struct container_call s = {.mcp = &call, .out = out};
    AUTO_BUF struct buf text = BUF_INIT(EXEC_TEXT_MAX);
    bool more = true;
    struct err e = ERR_INIT;

    call.arguments = arguments;
    if (!container_begin(&s, exec_arguments))
        return;
    for (size_t i = 0; more; i += PSANDBOX_COMMANDS_MAX) {
        if (exec_some(&s, i, &text, &more, &e) < 0) {
            report_soften(&e); /* behind the output of the commands before */
            buf_addf(&text, "%sError: %s\n", text.len > 0 ? "\n" : "", e.text);
            break;
        }
    }
    mcp_result_add(out, content_text_new(buf_str(&text), text.len));
}

/* ---- sandbox_stop ---- */

/* Closes the container and deletes its files. */
static int stop_container(const struct container_call *s, struct err *e)
{
    struct broker_client client = tools_client(s->mcp->app, s->mcp->tenant, s->mcp->cancel_fd);
    AUTO_FREE char *conversation = container_conversation(s, e);
    json_auto_t *closed = conversation ? broker_close_psandbox(&client, s->psandbox, e) : NULL;

    return closed ? adapt_delete(s->mcp, conversation, STOP_TIMEOUT_MS, e) : -1;
}

static void stop_tool(const struct mcp_tool_call *c, struct mcp_result *out)
{
    AUTO_CONTAINER_CALL struct container_call s = {.mcp = c, .out = out};
    struct err e = ERR_INIT;

    if (!container_begin(&s, stop_arguments))
        return;
    if (stop_container(&s, &e) == 0)
        adapt_tell(out, "Successfully stopped and removed container: %s", s.a.container);
    else
        container_fail(out, &e);
}

/* ---- the tool_list ---- */

static const struct mcp_tool tools[] = {
    {.name = "sandbox_initialize",
     .hints = {.open_world = true},
     .description = "Initialize a new compute environment for code execution. Creates a container "
                    "in which commands run and files stay until sandbox_stop. Returns its"
                    " container_id, which the other tools need.",
     .arguments = initialize_arguments,
     .call = initialize},
    {.name = "write_file_sandbox",
     .aliases = (const char *const[]){"write_file", NULL},
     .hints = {.destructive = true, .idempotent = true},
     .description = "Write a file to the sandboxed filesystem, below " CONTAINER_FOLDER ".",
     .arguments = write_arguments,
     .call = write_tool},
    {.name = "sandbox_exec",
     .hints = {.destructive = true, .open_world = true},
     .description = "Execute commands in the sandboxed environment, one after the other; the "
                    "first that fails is the last. They begin in " CONTAINER_FOLDER ".",
     .arguments = exec_arguments,
     .call = exec_tool},
    {.name = "sandbox_stop",
     .hints = {.destructive = true},
     .frees = true,
     .description = "Stop and remove a container and everything in it.",
     .arguments = stop_arguments,
     .call = stop_tool},
};

static const struct mcp_tool *const tool_list[] = {
    &tools[0], &tools[1], &tools[2], &tools[3], &copy_tools[0], &copy_tools[1], &copy_tools[2],
};

const struct toolset profile_container = {
    .name = "container",
    .instructions = "Runs commands in containers. sandbox_initialize makes one, "
                    "write_file_sandbox puts files into it, sandbox_exec runs commands in it, "
                    "sandbox_stop removes it with everything in it.",
    .tools = tool_list,
    .n_tools = ARRAY_LEN(tool_list),
    .resources = &container_resources,
};
