/* A message at one of several nodes: what the edge says, and the session, from the first line, the
 * body from the rest. It is served here or sent on, and after that it is served. */
#include "config.h"

#include "common/base/node.h"
#include "common/mcp/events/listen.h"
#include "common/mcp/server.h"
#include "common/rpc/json.h"
#include "common/tools/tools.h"
#include "tests/fakes/fake_broker.h"
#include "tests/fakes/tools_world.h"
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <unistd.h>

static const char key[] = "0123456789abcdef0123456789abcdef";

/* No session can be made in it. */
static int empty_folder(void)
{
    char path[] = "/tmp/fuzz_mcp_route.XXXXXX";
    int fd = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    rmdir(path); /* it is there as long as it is open */
    PROMISE(fd >= 0);
    return fd;
}

static const char *cut(char **at)
{
    char *start = strsep(at, "|");

    return start && *start ? start : NULL;
}

static void promise_sent_on(const struct mcp_answer *answer)
{
    PROMISE(!answer->body);
    PROMISE(*answer->to.name);
    if (answer->to.by == MCP_BY_NODE)
        PROMISE(node_name_ok(answer->to.name));
    for (const char *c = answer->to.name; *c; c++) /* it becomes a header */
        PROMISE(*c >= ' ' && *c <= '~');
}

static void serve(struct tools_world *world, const struct mcp_origin *origin, const json_t *message,
                  struct mcp_elsewhere *out)
{
    struct mcp_answer answer;

    mcp_handle(&world->server, origin, message, &answer);
    *out = answer.to;
    if (out->by != MCP_STAYS)
        promise_sent_on(&answer);
    PROMISE(!node_stands_in());
    mcp_listen_free(answer.listen);
    json_decref(answer.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct tools_world world;
    static int folder = -1;
    const uint8_t *end = memchr(data, '\n', len);
    char head[512], route[MCP_KEY_MAX + 4], *at = head;
    struct err e = ERR_INIT;
    struct mcp_elsewhere to;

    if (!end || (size_t)(end - data) >= sizeof head || memchr(data, '\0', (size_t)(end - data)))
        return 0;
    snprintf(head, sizeof head, "%.*s", (int)(end - data), (const char *)data);
    struct mcp_edge edge = {.route = cut(&at)};
    edge.home = cut(&at);
    const struct mcp_origin origin = {
        .http = true, .tenant = "me", .cancel_fd = -1, .session = cut(&at), .edge = &edge};
    json_auto_t *message = json_parse((const char *)end + 1, len - (size_t)(end - data) - 1,
                                      JSON_MAX_DEPTH, &e);
    if (!message)
        return 0;
    if (folder < 0)
        folder = empty_folder();
    node_set("n1");
    tools_world_init(&world);
    world.server.routes_by = tool_routes_by;
    world.server.sessions_fd = folder;
    world.server.seal_key = key;
    world.server.seal_key_len = sizeof key - 1;
    serve(&world, &origin, message, &to);
    if (to.by == MCP_BY_KEY) {
        snprintf(route, sizeof route, "me:%s", to.name);
        edge = (struct mcp_edge){.route = route, .again = true};
        serve(&world, &origin, message, &to);
        PROMISE(to.by == MCP_STAYS);
    }
    tools_world_clear(&world);
    return 0;
}
