/* A tool's arguments: the first byte chooses the tool, the rest is the JSON object. What is
 * accepted keeps the promises that the broker relies on; what is refused says why, in words that
 * can be shown. */
#include "config.h"

#include "common/protocol/client_files.h"
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

static void promise_wait(const struct tools_world *w, const json_t *asked)
{
    json_int_t wait = json_get_integer(asked, "waitMs", 0);

    PROMISE(wait >= 0 && (uint64_t)wait <= w->app.limits.wait_max_ms);
}

static void promise_run(const struct tools_world *w, const json_t *run)
{
    const struct broker_limits *limits = &w->app.limits;
    json_int_t timeout = json_get_integer(run, "timeoutMs", -1);
    const char *name;
    json_t *value;

    promise_conversation(run);
    promise_wait(w, run);
    PROMISE(timeout == 0 || (timeout >= 1000 && (uint64_t)timeout <= limits->timeout_max_ms));
    PROMISE(json_string_length(json_object_get(run, "code")) <= limits->code_max);
    PROMISE(json_string_length(json_object_get(run, "stdin")) <= limits->stdin_max);
    PROMISE(json_array_size(json_object_get(run, "args")) <= 64);
    json_object_foreach(json_object_get(run, "env"), name, value)
    {
        PROMISE(*name && !strpbrk(name, "= \n"));
        PROMISE(strncmp(name, "LD_", 3) != 0 && strcmp(name, "PATH") != 0);
        PROMISE(strcmp(name, "FILE_BASE_URL") != 0);
    }
}

static void promise_look(const struct tools_world *w, const json_t *asked)
{
    json_int_t since = json_get_integer(asked, "sinceByte", 0);

    promise_wait(w, asked);
    PROMISE(since >= 0 && since <= (json_int_t)1 << 53);
    PROMISE(json_string_length(json_object_get(asked, "runId")) <= 1024);
}

static void promise_put(const json_t *put)
{
    struct err e = ERR_INIT;
    const char *name = json_get_string(put, "name");

    promise_conversation(put);
    PROMISE(files_check_name("filename", name, strlen(name), &e) == 0);
}

static void promise_file_ask(const json_t *asked)
{
    json_int_t max = json_get_integer(asked, "max", 1);

    promise_conversation(asked);
    PROMISE(max >= 1 && max <= BROKER_LIST_MAX);
    PROMISE(json_string_length(json_object_get(asked, "glob")) <= 255);
    PROMISE(json_string_length(json_object_get(asked, "after")) <= 4096);
}

static void promise_refusal(const json_t *result)
{
    const char *text = tools_world_text(result, 0);

    PROMISE(text && *text);
    PROMISE(!strpbrk(text, "\r\n\x1b"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const char *const tools[] = {
        "run_code",    "upload_file",   "list_runners", "get_run",    "cancel_run",
        "list_runs",   "list_files",    "read_file",    "write_file", "move_file",
        "delete_file", "create_upload", "import_url"};
    static struct tools_world world;
    struct err e = ERR_INIT;

    if (len == 0)
        return 0;
    json_auto_t *arguments = json_parse((const char *)data + 1, len - 1, JSON_MAX_DEPTH, &e);
    if (!json_is_object(arguments))
        return 0;
    tools_world_init(&world);
    fake_broker.trouble.kind = ERR_NONE;
    fake_broker_push_ok("out", "[]");
    json_array_append(fake_broker.looks, json_array_get(fake_broker.run_results, 0));
    fake_broker.run_list = json_pack("{s:[]}", "runs");
    fake_broker_add_file("a.txt", "gr\xc3\xbc\xc3\x9f\xff", 7);
    for (int i = 0; i < 2; i++)
        fake_broker_push_file_answer("{\"files\":[],\"deleted\":1,\"name\":\"a\"}");
    AUTO_FREE char *text = json_dumps(arguments, JSON_COMPACT);
    json_auto_t *result = tools_world_call(
        &world, tools[(uint8_t)(data[0] - '0') % ARRAY_LEN(tools)], text);
    if (json_is_true(json_object_get(result, "isError")))
        promise_refusal(result);
    for (size_t i = 0; i < json_array_size(fake_broker.runs); i++)
        promise_run(&world, json_array_get(fake_broker.runs, i));
    for (size_t i = 0; i < json_array_size(fake_broker.puts); i++)
        promise_put(json_array_get(fake_broker.puts, i));
    for (size_t i = 0; i < json_array_size(fake_broker.file_asks); i++)
        promise_file_ask(json_array_get(fake_broker.file_asks, i));
    for (size_t i = 0; i < json_array_size(fake_broker.asked); i++)
        promise_look(&world, json_array_get(fake_broker.asked, i));
    tools_world_clear(&world);
    return 0;
}
