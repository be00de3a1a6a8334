/* In place of fcgi/registry.c: what the real server offers, and the fixtures. */
#include "config.h"

#include "fcgi/registry.h"

#include "common/tools/tools.h"
#include "tests/conformance/fixtures.h"

#include <string.h>

#define TOOLS_MAX   64
#define PROMPTS_MAX 32

static const struct mcp_tool *tools[TOOLS_MAX];
static const struct mcp_prompt *prompts[PROMPTS_MAX];

/* test:// is the fixtures', everything else the real server's. */
static const struct mcp_resources *owner(const char *uri)
{
    return strncmp(uri, "test://", 7) == 0 ? &fixture_resources : &tools_resources;
}

/* The fixtures on the first page, real files behind them; those cannot be had without a broker. */
static json_t *list(void *app, const char *tenant, const json_t *named, const char *cursor,
                    char **out_next, struct err *e)
{
    struct err ignored = ERR_INIT;

    if (cursor && *cursor)
        return tools_resources.list(app, tenant, named, cursor, out_next, e);
    json_t *page = fixture_resources.list(app, tenant, named, cursor, out_next, e);
    json_auto_t *files = tools_resources.list(app, tenant, named, cursor, out_next, &ignored);
    if (files)
        json_array_extend(page, files);
    return page;
}

static json_t *templates(void *app)
{
    json_t *all = fixture_resources.templates(app);
    json_auto_t *real = tools_resources.templates(app);

    json_array_extend(all, real);
    return all;
}

static json_t *read_one(void *app, const char *tenant, const char *uri, struct err *e)
{
    return owner(uri)->read(app, tenant, uri, e);
}

static bool can_subscribe(void *app, const char *tenant, const char *uri)
{
    return owner(uri)->can_subscribe(app, tenant, uri);
}

static json_t *complete(void *app, const char *tenant, const char *uri_template,
                        const char *argument, const char *value, const json_t *context)
{
    return owner(uri_template)->complete(app, tenant, uri_template, argument, value, context);
}

static const struct mcp_resources resources = {
    .list = list,
    .templates = templates,
    .read = read_one,
    .can_subscribe = can_subscribe,
    .complete = complete,
};

/* The fixtures' tasks are known by their ids, all others are real runs. */
static const struct mcp_tasks *housekeeper(const char *id)
{
    return strncmp(id, FIXTURE_TASK_PREFIX, strlen(FIXTURE_TASK_PREFIX)) == 0 ? &fixture_tasks
                                                                              : &tools_tasks;
}

static int get_task(const struct mcp_tool_call *call, const char *id, bool brief,
                    struct mcp_task *out, struct err *e)
{
    return housekeeper(id)->get(call, id, brief, out, e);
}

static int update_task(const struct mcp_tool_call *call, const char *id, const json_t *responses,
                       struct err *e)
{
    return housekeeper(id)->update(call, id, responses, e);
}

static int cancel_task(const struct mcp_tool_call *call, const char *id, struct err *e)
{
    return housekeeper(id)->cancel(call, id, e);
}

static const struct mcp_tasks tasks = {
    .get = get_task, .update = update_task, .cancel = cancel_task};

static size_t add_tools(size_t n, const struct mcp_tool *const *list_of_tools)
{
    for (; *list_of_tools && n < TOOLS_MAX; list_of_tools++)
        tools[n++] = *list_of_tools;
    return n;
}

static size_t collect_tools(void)
{
    size_t n;
    const struct mcp_tool *const *real = tools_all(&n);

    for (size_t i = 0; i < n; i++)
        tools[i] = real[i];
    n = add_tools(n, fixture_content_tools);
    n = add_tools(n, fixture_telling_tools);
    n = add_tools(n, fixture_asking_tools);
    n = add_tools(n, fixture_round_tools);
    return add_tools(n, fixture_task_tools);
}

static size_t collect_prompts(void)
{
    size_t n;
    const struct mcp_prompt *const *real = tools_prompts(&n);

    for (size_t i = 0; i < n; i++)
        prompts[i] = real[i];
    for (size_t i = 0; fixture_prompts[i] && n < PROMPTS_MAX; i++)
        prompts[n++] = fixture_prompts[i];
    return n;
}

const struct registry *registry_of_server(void)
{
    static struct registry registry = {
        .tools = tools, .prompts = prompts, .resources = &resources, .tasks = &tasks};

    if (registry.n_tools == 0) {
        registry.n_tools = collect_tools();
        registry.n_prompts = collect_prompts();
    }
    return &registry;
}
