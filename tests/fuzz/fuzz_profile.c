/*
 * Other servers' tools: the first byte chooses the set, the second the tool, the rest is the JSON
 * object of arguments. Whatever comes, there is one answer of content blocks or an error, and what
 * reaches the broker names a file and a conversation that may be.
 */
#include "config.h"

#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "tests/fakes/fake_broker.h"
#include "tests/fakes/tools_world.h"
#include "tests/fuzz/fuzz.h"

#define CONVERSATION_MAX 256

static void promise_conversation(const json_t *request)
{
    const json_t *id = json_object_get(request, "conversationId");
    const char *s = json_string_value(id);

    PROMISE(json_string_length(id) > 0 && json_string_length(id) <= CONVERSATION_MAX);
    for (; *s; s++)
        PROMISE((unsigned char)*s >= 0x20 && *s != 0x7F);
}

static void promise_put(const json_t *put)
{
    struct err e = ERR_INIT;
    const char *name = json_get_string(put, "name");

    promise_conversation(put);
    PROMISE(files_check_name("filename", name, strlen(name), &e) == 0);
}

static void promise_answer(const json_t *result)
{
    const json_t *content = json_object_get(result, "content");

    if (json_is_integer(json_object_get(result, "code")))
        PROMISE(json_string_length(json_object_get(result, "message")) > 0);
    else
        PROMISE(json_array_size(content) == 1 && tools_world_text(result, 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const sets[] = {"runner", "session", "container", "interpreter"};
    static struct tools_world world;
    struct err e = ERR_INIT;

    if (len < 2)
        return 0;
    json_auto_t *arguments = json_parse((const char *)data + 2, len - 2, JSON_MAX_DEPTH, &e);
    if (!json_is_object(arguments))
        return 0;
    tools_world_init(&world);
    tools_world_offer(&world, sets[data[0] % ARRAY_LEN(sets)]);
    fake_broker.trouble.kind = ERR_NONE;
    fake_broker_push_ok("out", "[]");
    fake_broker_add_file("a.txt", "gr\xc3\xbc\xc3\x9f\xff", 7);
    for (int i = 0; i < 2; i++)
        fake_broker_push_file_answer("{\"files\":[]}");
    AUTO_FREE char *text = json_dumps(arguments, JSON_COMPACT);
    const struct mcp_tool *tool = world.server.tools[data[1] % world.server.n_tools];
    json_auto_t *result = tools_world_call(&world, tool->name, text);
    promise_answer(result);
    for (size_t i = 0; i < json_array_size(fake_broker.runs); i++)
        promise_conversation(json_array_get(fake_broker.runs, i));
    for (size_t i = 0; i < json_array_size(fake_broker.puts); i++)
        promise_put(json_array_get(fake_broker.puts, i));
    for (size_t i = 0; i < json_array_size(fake_broker.file_asks); i++)
        promise_conversation(json_array_get(fake_broker.file_asks, i));
    tools_world_clear(&world);
    return 0;
}
