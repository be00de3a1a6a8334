/* As fuzz_mcp, with everything that a call can do on the way: a session (the fourth field of the
 * first line is "s") or stdio ("p"), prompts, resources, questions, streams. */
#include "config.h"

#include "common/base/auto.h"
#include "common/mcp/events/listen.h"
#include "common/mcp/session/stream.h"
#include "common/rpc/json.h"
#include "tests/fakes/mcp_world.h"
#include "tests/fuzz/fuzz.h"

static struct mcp_world world;

static void clear_world(void)
{
    mcp_world_clear(&world);
}

static void make_world(void)
{
    static bool made;

    if (made)
        return;
    made = true;
    mcp_world_init(&world);
    mcp_world_start(&world, "2025-11-25", "{\"elicitation\":{}}");
    json_object_set_new(
        world.replies, "elicitation/create",
        json_loads("{\"action\":\"accept\",\"content\":{\"name\":\"A\"}}", 0, NULL));
    atexit(clear_world);
}

static const char *cut(char **at)
{
    char *start = *at;
    char *bar = strchr(start, '|');

    if (bar)
        *bar = '\0';
    *at = bar ? bar + 1 : start + strlen(start);
    return *start ? start : NULL;
}

static void set_origin(char *head)
{
    struct mcp_origin *o = &world.origin;

    o->protocol_version = cut(&head);
    o->method = cut(&head);
    o->name = cut(&head);
    const char *kind = cut(&head);
    o->session = kind && *kind == 's' ? world.session : NULL;
    o->http = !(kind && *kind == 'p');
    o->stdio_client = o->http ? NULL : &world.stdio_client;
}

/* A message of ours: a request, a notification, an answer; a batch has only the latter. */
static void promise_message(const json_t *m)
{
    size_t i;
    json_t *one;

    if (json_is_array(m)) {
        json_array_foreach(m, i, one) promise_message(one);
        return;
    }
    PROMISE(strcmp(json_get_string(m, "jsonrpc"), "2.0") == 0);
    PROMISE(!!json_object_get(m, "method") + !!json_object_get(m, "result") +
                !!json_object_get(m, "error") ==
            1);
    PROMISE(!json_is_null(json_object_get(m, "id")));
}

static void promise_listen(struct mcp_listen *l)
{
    if (!l)
        return;
    json_auto_t *end = mcp_listen_end(l, &world.server);
    promise_message(end);
    mcp_listen_free(l);
}

static void serve(const json_t *message)
{
    struct mcp_answer answer;

    mcp_handle(&world.server, &world.origin, message, &answer);
    PROMISE(answer.status == 200 || answer.status == 202 || answer.status == 400 ||
            answer.status == 404);
    PROMISE((answer.status == 202) == (answer.body == NULL));
    if (answer.body)
        promise_message(answer.body);
    promise_message(world.sent);
    promise_listen(answer.listen);
    json_decref(answer.body);
    if (answer.session[0])
        unlinkat(world.server.sessions_fd, answer.session, 0);
}

static void forget(void)
{
    char id[MCP_EVENT_ID_MAX], name[64];

    json_array_clear(world.sent);
    json_array_clear(world.events);
    json_array_clear(world.inbox);
    mcp_stdio_client_clear(&world.stdio_client);
    if (!world.out.store)
        return;
    mcp_stream_first_id(world.out.store, id);
    snprintf(name, sizeof name, "%.32s" MCP_STREAM_SUFFIX, id);
    mcp_stream_end(TAKE_PTR(world.out.store));
    unlinkat(world.server.sessions_fd, name, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const uint8_t *end = len > 0 ? memchr(data, '\n', len) : NULL;
    char head[256] = "";
    struct err e = ERR_INIT;

    if (!end || (size_t)(end - data) >= sizeof head)
        return 0;
    memcpy(head, data, (size_t)(end - data));
    make_world();
    set_origin(head);
    json_auto_t *message = json_parse((const char *)end + 1, len - (size_t)(end - data) - 1,
                                      JSON_MAX_DEPTH, &e);
    if (message)
        serve(message);
    forget();
    return 0;
}
