#include "config.h"

#include "common/mcp/features/result.h"

#include "common/base/buf.h"
#include "common/mcp/features/content.h"
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
    buf_clear(&r->text);
    mcp_need_clear(&r->need);
    json_decref(r->task);
    *r = (struct mcp_result){0};
}

void mcp_result_add(struct mcp_result *r, json_t *take_block)
{
    if (!r->content)
        r->content = json_array();
    json_array_append_new(r->content, take_block);
}

void mcp_result_show(struct mcp_result *r, const char *text, size_t len)
{
    r->text.max = TEXT_MAX;
    buf_add(&r->text, text, len);
    if (len > 0)
        buf_add_str(&r->text, text[len - 1] == '\n' ? "\n" : "\n\n");
    r->shown = r->text.len;
}

void mcp_result_say(struct mcp_result *r, const char *fmt, ...)
{
    va_list ap;

    r->text.max = TEXT_MAX;
    if (r->text.len > 0 && r->text.data[r->text.len - 1] != '\n')
        buf_add_char(&r->text, '\n');
    va_start(ap, fmt);
    buf_vaddf(&r->text, fmt, ap);
    va_end(ap);
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
    const char *said = buf_str(&r->text) + r->shown;

    return *said ? said : text ? text : "";
}

json_t *mcp_result_block(json_t *block, unsigned features)
{
    const char *type = json_get_string(block, "type");
    const char *mime_type = json_get_string(block, "mimeType");
    AUTO_BUF struct buf text = BUF_INIT(1024);

    if (type && strcmp(type, "resource_link") == 0 && !(features & MCP_CAN_LINK))
        return content_link_to_text(block);
    if (type && strcmp(type, "audio") == 0 && !(features & MCP_CAN_AUDIO)) {
        buf_addf(&text, "(audio, %s: this revision of the protocol cannot carry it)",
                 mime_type ? mime_type : "type unknown");
        return content_text_new(buf_str(&text), text.len);
    }
    return json_incref(block); /* shared with the tool's array, never changed */
}

json_t *mcp_result_to_json(const struct mcp_result *r, unsigned features)
{
    bool in_text = features & MCP_IN_TEXT;
    json_t *structured = features & MCP_CAN_STRUCTURE && !in_text ? r->structured : NULL;
    bool told = r->text_given || (r->text.len > 0 && (in_text || structured));
    const size_t from = in_text ? 0 : r->shown;
    AUTO_BUF struct buf object = BUF_INIT(TEXT_MAX);
    json_t *blocks = json_array();
    json_t *block;

    if (r->structured && !told && json_write(r->structured, &object) == 0)
        json_array_append_new(blocks, content_text_new(buf_str(&object), object.len));
    if (r->text.len > from)
        json_array_append_new(blocks, content_text_new(r->text.data + from, r->text.len - from));
    for (size_t i = 0; (block = json_array_get(r->content, i)); i++) {
        const char *type = json_get_string(block, "type");
        bool named = in_text && r->structured && type && strcmp(type, "resource_link") == 0;

        if (!named) /* the text names it already */
            json_array_append_new(blocks, mcp_result_block(block, features));
    }
    return json_pack("{s:o, s:O*, s:b}", "content", blocks, "structuredContent", structured,
                     "isError", r->is_error);
}
