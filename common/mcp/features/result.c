#include "config.h"

#include "common/mcp/features/result.h"

#include "common/base/buf.h"
#include "common/mcp/features/content.h"
#include "common/mcp/features/task.h"
#include "common/mcp/revision.h"
#include "common/rpc/json.h"

#include <stdarg.h>
#include <string.h>

/* Tools bound what they return long before this; it only keeps a mistake from eating the memory. */
#define TEXT_MAX (128u * 1024 * 1024)

void mcp_result_clear(struct mcp_result *r)
{
    json_decref(r->structured);
    json_decref(r->content);
    mcp_need_clear(&r->need);
    mcp_task_free(r->task);
    *r = (struct mcp_result)MCP_RESULT_INIT;
}

void mcp_result_add(struct mcp_result *r, json_t *take_block)
{
    if (!r->content)
        r->content = json_array();
    json_array_append_new(r->content, take_block);
}

void mcp_result_fail(struct mcp_result *r, const char *fmt, ...)
{
    AUTO_BUF struct buf text = BUF_INIT(8192);
    va_list ap;

    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    mcp_result_clear(r);
    r->is_error = true;
    mcp_result_add(r, content_text_new(buf_str(&text), text.len));
}

void mcp_result_refuse(struct mcp_result *r, int code, const char *text)
{
    mcp_result_fail(r, "%s", text);
    r->refusal = code;
}

const char *mcp_result_text(const struct mcp_result *r)
{
    const char *text = json_get_string(json_array_get(r->content, 0), "text");

    return text ? text : "";
}

static void add_structured_text(json_t *blocks, const json_t *structured)
{
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);

    if (json_write(structured, &text) == 0)
        json_array_append_new(blocks, content_text_new(buf_str(&text), text.len));
}

static json_t *audio_in_words(const json_t *block)
{
    AUTO_BUF struct buf text = BUF_INIT(1024);
    const char *type = json_get_string(block, "mimeType");

    buf_addf(&text, "(audio, %s: this revision of the protocol cannot carry it)",
             type ? type : "type unknown");
    return content_text_new(buf_str(&text), text.len);
}

json_t *mcp_result_block(json_t *block, unsigned features)
{
    const char *type = json_get_string(block, "type");

    if (type && strcmp(type, "resource_link") == 0 && !(features & MCP_CAN_LINK))
        return content_link_to_text(block);
    if (type && strcmp(type, "audio") == 0 && !(features & MCP_CAN_AUDIO))
        return audio_in_words(block);
    return json_incref(block); /* shared with the tool's array, never changed */
}

json_t *mcp_result_to_json(const struct mcp_result *r, unsigned features)
{
    json_t *result = json_object();
    json_t *blocks = json_array();
    size_t i;
    json_t *block;

    if (r->structured && !r->text_given)
        add_structured_text(blocks, r->structured);
    json_array_foreach(r->content, i, block)
        json_array_append_new(blocks, mcp_result_block(block, features));
    json_object_set_new(result, "content", blocks);
    if (r->structured && (features & MCP_CAN_STRUCTURE))
        json_object_set(result, "structuredContent", r->structured);
    json_object_set_new(result, "isError", json_boolean(r->is_error));
    return result;
}
