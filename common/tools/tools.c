#include "config.h"

#include "common/tools/tools.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/mcp/features/tool.h"

#include <stdio.h>
#include <string.h>

#define SEPARATORS ", "

/* In the order of tools/list, each with its toolset, the scopes that it needs, and what decides
 * about its node where there are several. A new tool has a row in its own file, a name in list.h,
 * and a line here. */
/* clang-format off */
static const struct {
    int set;
    unsigned needs;
    enum mcp_routes_by routes_by;
    const struct mcp_tool *tool;
} table[] = {
    {TOOLSET_CORE, SCOPE_RUN, MCP_ROUTES_NEW, &tool_run_code},
    {TOOLSET_CORE, SCOPE_RUN, MCP_ROUTES_NAMED, &tool_get_run},
    {TOOLSET_CORE, SCOPE_RUN, MCP_ROUTES_NAMED, &tool_cancel_run},
    {TOOLSET_CORE, SCOPE_FILES, MCP_ROUTES_NAMED, &tool_list_files},
    {TOOLSET_CORE, SCOPE_FILES, MCP_ROUTES_NAMED, &tool_read_file},
    {TOOLSET_CORE, SCOPE_FILES, MCP_ROUTES_NEW, &tool_write_file},
    {TOOLSET_CORE, SCOPE_FILES, MCP_ROUTES_NEW, &tool_upload_file},
    {TOOLSET_CORE, SCOPE_FILES, MCP_ROUTES_NEW, &tool_create_upload},
    {TOOLSET_CORE, SCOPE_RUN, MCP_ROUTES_NEW, &tool_install_package},
    {TOOLSET_CORE, 0, MCP_ROUTES_NOWHERE, &tool_list_runners},
    {TOOLSET_FILES, SCOPE_FILES, MCP_ROUTES_NAMED, &tool_move_file},
    {TOOLSET_FILES, SCOPE_FILES, MCP_ROUTES_NAMED, &tool_delete_file},
    {TOOLSET_TRANSFER, SCOPE_FILES | SCOPE_NETWORK, MCP_ROUTES_NEW, &tool_import_url},
    {TOOLSET_TRANSFER, SCOPE_FILES, MCP_ROUTES_NAMED, &tool_download_archive},
    {TOOLSET_TRANSFER, SCOPE_FILES, MCP_ROUTES_NEW, &tool_upload_archive},
    {TOOLSET_TRANSFER, SCOPE_FILES, MCP_ROUTES_NOWHERE, &tool_copy_project},
    {TOOLSET_TRANSFER, SCOPE_FILES, MCP_ROUTES_NOWHERE, &tool_copy_file},
    {TOOLSET_TRANSFER, SCOPE_FILES, MCP_ROUTES_NOWHERE, &tool_copy_file_from_sandbox},
    {TOOLSET_SANDBOXES, SCOPE_RUN, MCP_ROUTES_NEW, &tool_create_sandbox},
    {TOOLSET_SANDBOXES, SCOPE_RUN, MCP_ROUTES_NAMED, &tool_exec},
    {TOOLSET_SANDBOXES, SCOPE_RUN, MCP_ROUTES_NAMED, &tool_get_sandbox_status},
    {TOOLSET_SANDBOXES, SCOPE_RUN, MCP_ROUTES_NAMED, &tool_close_sandbox},
    {TOOLSET_SANDBOXES, SCOPE_RUN, MCP_ROUTES_NAMED, &tool_reset_session},
    {TOOLSET_ADMIN, SCOPE_RUN | SCOPE_ADMIN, MCP_ROUTES_NAMED, &tool_list_runs},
    {TOOLSET_ADMIN, SCOPE_RUN | SCOPE_FILES | SCOPE_ADMIN, MCP_ROUTES_NAMED, &tool_delete_conversation},
};

static const struct {
    const char *name;
    int set;
} names[] = {
    {"core", TOOLSET_CORE},
    {"files", TOOLSET_FILES},
    {"transfer", TOOLSET_TRANSFER},
    {"sandboxes", TOOLSET_SANDBOXES},
    {"admin", TOOLSET_ADMIN},
    {"all", TOOLSET_ALL},
    {"runner", TOOLSET_RUNNER},
    {"session", TOOLSET_SESSION},
    {"container", TOOLSET_CONTAINER},
    {"interpreter", TOOLSET_INTERPRETER},
};
/* clang-format on */

static const struct toolset *const theirs[TOOLSETS] = {
    [TOOLSET_RUNNER] = &profile_runner,
    [TOOLSET_SESSION] = &profile_session,
    [TOOLSET_CONTAINER] = &profile_container,
    [TOOLSET_INTERPRETER] = &profile_interpreter,
};

const struct mcp_tool *const *tools_all(size_t *n)
{
    static const struct mcp_tool *all[ARRAY_LEN(table)];

    *n = ARRAY_LEN(table);
    for (size_t i = 0; i < *n; i++)
        all[i] = table[i].tool;
    return all;
}

const struct toolset *toolset_theirs(int set)
{
    return theirs[set];
}

/* ---- names ---- */

static int set_named(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i].name) == len && memcmp(names[i].name, name, len) == 0)
            return names[i].set;
    return -1;
}

int toolset_find(const char *list)
{
    int found = set_named(list, strlen(list));
    int sets = TOOLSET_CORE;

    if (found >= 0)
        return found;
    list += strspn(list, SEPARATORS);
    if (!*list)
        return -1;
    while (*list) {
        size_t len = strcspn(list, SEPARATORS);

        found = set_named(list, len);
        if (found < 0 || found > TOOLSET_ALL)
            return -1;
        sets |= found;
        list += len;
        list += strspn(list, SEPARATORS);
    }
    return sets;
}

bool toolset_limit_ok(const char *list)
{
    for (list += strspn(list, SEPARATORS); *list; list += strspn(list, SEPARATORS)) {
        size_t len = strcspn(list, SEPARATORS);

        if (set_named(list, len) < 0)
            return false;
        list += len;
    }
    return true;
}

int toolset_limit(int set, const char *list)
{
    int most = TOOLSET_CORE;

    if (!list[strspn(list, SEPARATORS)])
        return set;
    for (list += strspn(list, SEPARATORS); *list; list += strspn(list, SEPARATORS)) {
        size_t len = strcspn(list, SEPARATORS);
        int named = set_named(list, len);

        if (named == set)
            return set;
        if (named >= 0 && named <= TOOLSET_ALL)
            most |= named;
        list += len;
    }
    return set <= TOOLSET_ALL ? set & most : -1;
}

static const char *name_of_set(int set)
{
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].set == set)
            return names[i].name;
    return "";
}

/* ---- scopes ---- */

static const char *const scope_names[] = {"run", "files", "network", "admin"}; /* by bit */

unsigned scopes_parse(const char *list)
{
    unsigned scopes = 0;

    for (list += strspn(list, SEPARATORS); *list; list += strspn(list, SEPARATORS)) {
        size_t len = strcspn(list, SEPARATORS), i = 0;

        while (i < ARRAY_LEN(scope_names) &&
               (strlen(scope_names[i]) != len || memcmp(scope_names[i], list, len) != 0))
            i++;
        if (i == ARRAY_LEN(scope_names))
            return 0;
        scopes |= 1u << i;
        list += len;
    }
    return scopes;
}

void scopes_format(unsigned scopes, char out[SCOPE_TEXT_MAX])
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(scope_names); i++)
        if (scopes & 1u << i)
            len += (size_t)snprintf(out + len, SCOPE_TEXT_MAX - len, "%s%s", len ? "," : "",
                                    scope_names[i]);
}

unsigned tool_needs(const struct mcp_tool *tool)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].tool == tool)
            return table[i].needs;
    return 0;
}

enum mcp_routes_by tool_routes_by(const struct mcp_tool *tool)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].tool == tool)
            return table[i].routes_by;
    return MCP_ROUTES_NOWHERE;
}

unsigned toolset_needs(int set)
{
    return theirs[set] ? SCOPE_RUN | SCOPE_FILES : 0;
}

/* ---- which tools ---- */

/* Tools that are not in the table (another server's) are in each set that has them. */
static int set_of(const struct mcp_tool *tool)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].tool == tool)
            return table[i].set;
    return TOOLSET_CORE;
}

bool toolset_offers(int set, const struct mcp_tool *tool, void *app, bool local)
{
    const enum mcp_reach others = local ? MCP_REACH_HTTP : MCP_REACH_LOCAL;

    return (set_of(tool) & ~set) == 0 && tool->reach != others &&
           (!tool->offered || tool->offered(app));
}

char *tools_absent(void *app, const char *name, bool local, unsigned scopes)
{
    char missing[SCOPE_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct mcp_tool *tool = table[i].tool;

        if (strcmp(tool->name, name) != 0)
            continue;
        scopes_format(table[i].needs & ~scopes, missing);
        log_note(LOG_TOOL, tool->name);
        log_reason(*missing ? "scope" : "not_offered", NULL);
        if (*missing)
            return mem_printf("insufficient scope: the tool %s needs the scope %s, which this "
                              "token does not have",
                              name, missing);
        if (toolset_offers(TOOLSET_ALL, tool, app, local))
            return mem_printf("the tool %s is not offered here: it is in the toolset \"%s\" (all "
                              "toolsets: %s; here: the setting TOOLS)",
                              name, name_of_set(table[i].set),
                              local ? "--tools all" : "at /mcp/all");
        return mem_printf("the tool %s is switched off by the settings of this server", name);
    }
    return NULL;
}
