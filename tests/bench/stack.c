#include "config.h"

#include "tests/bench/stack.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"

#include <string.h>

void stack_open(struct stack *s, const char *address, const char *token)
{
    *s = (struct stack){.token = token};
    wire_open(&s->front, address);
}

void stack_close(struct stack *s)
{
    wire_close(&s->front);
}

void stack_request(const char *token, const char *method, const char *params_json, struct buf *out)
{
    AUTO_FREE char *headers = mem_printf(
        "Authorization: Bearer %s\r\nAccept: application/json, text/event-stream\r\n"
        "MCP-Protocol-Version: 2025-06-18\r\n",
        token);
    AUTO_FREE char *body = mem_printf("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"%s%s}",
                                      method, params_json ? ",\"params\":" : "",
                                      params_json ? params_json : "");

    wire_request(out, "POST", "/mcp", headers, body, strlen(body));
}

static void check_success(int status, const struct buf *answer)
{
    struct err e;

    if (status != 200)
        bench_die("the server answers %d: %s", status, buf_str(answer));
    json_auto_t *json = json_parse(buf_str(answer), answer->len, 32, &e);
    const json_t *result = json_object_get(json_object_get(json, "result"), "structuredContent");
    if (!json_is_true(json_object_get(result, "success")))
        bench_die("run_code did not succeed: %s", buf_str(answer));
}

int64_t stack_run_code(struct stack *s, const char *language, const char *code)
{
    AUTO_BUF struct buf request = BUF_INIT(1 << 20);
    AUTO_BUF struct buf answer = BUF_INIT(WIRE_REPLY_MAX);
    json_auto_t *params = json_pack("{s:s, s:{s:s, s:s, s:s}}", "name", "run_code", "arguments",
                                    "conversationId", "bench", "language", language, "code", code);
    AUTO_FREE char *text = json_dumps(params, JSON_COMPACT);

    stack_request(s->token, "tools/call", text, &request);
    int64_t began = clock_mono_us();
    int status = wire_call(&s->front, request.data, request.len, &answer);
    int64_t ended = clock_mono_us();
    check_success(status, &answer);
    return ended - began;
}

void stack_list_tools(struct stack *s, struct buf *out)
{
    AUTO_BUF struct buf request = BUF_INIT(1 << 16);

    stack_request(s->token, "tools/list", NULL, &request);
    int status = wire_call(&s->front, request.data, request.len, out);
    if (status != 200)
        bench_die("the server answers %d to tools/list: %s", status, buf_str(out));
}
