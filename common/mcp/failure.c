#include "config.h"

#include "common/mcp/failure.h"

#include "common/base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int mcp_fail(struct mcp_failure *f, int status, int code, json_t *take_data, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f->message, sizeof(f->message), fmt, ap);
    va_end(ap);
    /* Cutting at the end may have split a character, and JSON takes whole ones only. */
    f->message[utf8_cut(f->message, strlen(f->message), sizeof(f->message) - 4)] = '\0';
    f->status = status;
    f->code = code;
    json_decref(f->data);
    f->data = take_data;
    return -1;
}

void mcp_failure_clear(struct mcp_failure *f)
{
    json_decref(f->data);
    f->data = NULL;
    f->status = 0;
}
