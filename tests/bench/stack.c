#include "config.h"

#include "tests/bench/stack.h"

#include "common/base/mem.h"

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

void stack_list_tools(struct stack *s, struct buf *out)
{
    AUTO_BUF struct buf request = BUF_INIT(1 << 16);

    stack_request(s->token, "tools/list", NULL, &request);
    int status = wire_call(&s->front, request.data, request.len, out);
    if (status != 200)
        bench_die("the server answers %d to tools/list: %s", status, buf_str(out));
}
