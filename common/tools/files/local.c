#include "config.h"

#include "common/tools/files/local.h"

#include "common/rpc/json.h"
#include "common/tools/tools.h"

#define KEY    "roots"
#define METHOD "roots/list"

static void add_roots(struct local_dirs *dirs, const json_t *answer)
{
    const json_t *roots = json_object_get(answer, "roots"), *root;
    size_t i;

    json_array_foreach(roots, i, root)
    {
        const char *uri = json_get_string(root, "uri");
        if (uri)
            local_dirs_add_uri(dirs, uri);
    }
}

int local_allowed(const struct mcp_tool_call *c, struct local_dirs *out, struct mcp_need *need,
                  struct err *e)
{
    const struct tools_app *app = c->app;

    if (app->local_dirs && local_dirs_add(out, app->local_dirs, e) < 0)
        return err_wrap(e, "SANDCGI_LOCAL_DIRS");
    if (c->elicitation && mcp_elicitation_possible(c->elicitation, METHOD)) {
        const json_t *answer = mcp_elicitation_response(c->elicitation, KEY);
        if (!answer) {
            mcp_need_add(need, KEY, METHOD, json_object());
            return 0;
        }
        add_roots(out, answer);
    }
    if (out->n > 0)
        return 1;
    return err_set(e, ERR_DENIED,
                   "no directory of this machine may be used: neither SANDCGI_LOCAL_DIRS nor the "
                   "client's roots name one");
}
