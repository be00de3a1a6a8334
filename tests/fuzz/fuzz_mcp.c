/* A client's message, all the way to its answer: headers from the first line, the body from the
 * rest. Whatever comes, there is an answer that fits the protocol. */
#include "config.h"

#include "common/mcp/events/listen.h"
#include "common/mcp/server.h"
#include "common/rpc/json.h"
#include "tests/fakes/fake_broker.h"
#include "tests/fakes/tools_world.h"
#include "tests/fuzz/fuzz.h"

/* The first line holds the three headers, separated by '|'; an empty one is absent. */
struct input {
    char head[256];
    struct mcp_origin origin;
    const char *body;
    size_t body_len;
};

static const char *cut(char **at)
{
    char *start = *at;
    char *bar = strchr(start, '|');

    if (bar)
        *bar = '\0';
    *at = bar ? bar + 1 : start + strlen(start);
    return *start ? start : NULL;
}

static bool split(const uint8_t *data, size_t len, struct input *in)
{
    const uint8_t *end = memchr(data, '\n', len);
    size_t head = end ? (size_t)(end - data) : 0;
    char *at = in->head;

    if (!end || head >= sizeof(in->head))
        return false;
    memcpy(in->head, data, head);
    in->head[head] = '\0';
    in->origin = (struct mcp_origin){.http = true, .tenant = "me", .cancel_fd = -1};
    in->origin.protocol_version = cut(&at);
    in->origin.method = cut(&at);
    in->origin.name = cut(&at);
    in->body = (const char *)end + 1;
    in->body_len = len - head - 1;
    return true;
}

static bool is_status(int status)
{
    return status == 200 || status == 202 || status == 400 || status == 404;
}

/* One object, or an array of them for a batch. */
static void promise_envelope(const json_t *body)
{
    size_t i;
    json_t *one;

    if (json_is_array(body)) {
        PROMISE(json_array_size(body) > 0);
        json_array_foreach(body, i, one) promise_envelope(one);
        return;
    }
    PROMISE(strcmp(json_get_string(body, "jsonrpc"), "2.0") == 0);
    PROMISE(json_object_get(body, "method") || /* the acknowledgement of a listen */
            (json_object_get(body, "result") != NULL) != (json_object_get(body, "error") != NULL));
    PROMISE(!json_is_null(json_object_get(body, "id")));
}

static void promise_answer(const struct mcp_answer *answer)
{
    PROMISE(is_status(answer->status));
    PROMISE((answer->status == 202) == (answer->body == NULL));
    PROMISE(answer->method && answer->detail);
    if (!answer->body)
        return;
    promise_envelope(answer->body);
    char *text = json_dumps(answer->body, JSON_COMPACT);
    PROMISE(text);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct tools_world world;
    struct input in;
    struct mcp_answer answer;
    struct err e = ERR_INIT;

    if (!split(data, len, &in))
        return 0;
    tools_world_init(&world);
    fake_broker_push_ok("out",
                        "[{\"name\":\"a.png\",\"size\":3,\"change\":\"created\",\"url\":\"u\"}]");
    json_auto_t *message = json_parse(in.body, in.body_len, JSON_MAX_DEPTH, &e);
    if (message)
        mcp_handle(&world.server, &in.origin, message, &answer);
    else
        mcp_parse_failed(&world.server, &e, &answer);
    promise_answer(&answer);
    mcp_listen_free(answer.listen);
    json_decref(answer.body);
    tools_world_clear(&world);
    return 0;
}
