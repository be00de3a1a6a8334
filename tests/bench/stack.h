/* MCP calls through the front door, on one kept-alive connection. */
#pragma once

#include "common/base/buf.h"
#include "tests/bench/wire.h"

#include <stdint.h>

struct stack {
    struct wire front;
    const char *token;
};

void stack_open(struct stack *s, const char *address, const char *token);
void stack_close(struct stack *s);

/* Appends the HTTP request of a call; params_json may be NULL. */
void stack_request(const char *token, const char *method, const char *params_json, struct buf *out);

/* The body of tools/list. */
void stack_list_tools(struct stack *s, struct buf *out);
