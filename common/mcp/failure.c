#include "config.h"

#include "common/mcp/failure.h"

#include "common/base/buf.h"
#include "common/base/utf8.h"
#include "common/mcp/features/content.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_SHOWN_MAX 100

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

int mcp_fail_named(struct mcp_failure *f, int code, const char *text, const char *name)
{
    AUTO_BUF struct buf cut = BUF_INIT(NAME_SHOWN_MAX);
    AUTO_BUF struct buf clean = BUF_INIT(3 * NAME_SHOWN_MAX);

    buf_add(&cut, name, utf8_cut(name, strlen(name), NAME_SHOWN_MAX));
    content_clean_name(buf_str(&cut), &clean);
    return mcp_fail(f, 200, code, NULL, "%s%s", text, buf_str(&clean));
}

void mcp_failure_clear(struct mcp_failure *f)
{
    json_decref(f->data);
    f->data = NULL;
    f->status = 0;
}
