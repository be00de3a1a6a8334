/*
 * The result of a tool call as a tool states it: an object, a text for a model, further content, or
 * a failure. Its form is decided here (mcp_result_to_json), for each revision and place:
 *
 * - for a model (MCP_IN_TEXT): the text and pictures. Many clients drop pictures and text when
 * there is an object, or everything when there is a link.
 * - for a program: the object, what the text says beyond it, pictures and links.
 *
 * Where a tool has no text, the object as JSON is its text, in front of the other content.
 */
#pragma once

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/mcp/client/elicitation.h"

#include <jansson.h>
#include <stdbool.h>

struct mcp_result {
    json_t *structured; /* an object that fits the tool's output schema; NULL: content only; owned
                         */
    json_t *content;    /* array of content blocks (content.h); NULL: none; owned */
    struct buf text;    /* mcp_result_show, mcp_result_say */
    size_t shown;       /* bytes at its beginning that structured has, too */
    bool text_given;    /* content holds the text of structured already */
    bool is_error;      /* the tool could not do what it was asked for */
    enum err_kind failure; /* of an error: its kind, for adapters that shape it differently */
    int refusal; /* a JSON-RPC code: the call is answered with that error, whose message is the
                    text of the first block and whose data is structured; 0: with a result */
    struct mcp_need need; /* not empty: the rest is ignored, the tool is called again with answers;
                             owned */
    json_t *task; /* mcp_task_to_json: the work continues as this task, which is the whole answer;
                     only when mcp_tool_call.can_task; NULL: none; owned */
};

#define AUTO_MCP_RESULT AUTO(mcp_result_clear)

void mcp_result_clear(struct mcp_result *r);

/* Appends a content block; takes it. NULL (a block that could not be made) is ignored. */
void mcp_result_add(struct mcp_result *r, json_t *take_block);

/* The text holds all of structured that a model needs. Its beginning: what structured has in the
 * same words, such as a program's output. */
void mcp_result_show(struct mcp_result *r, const char *text, size_t len);

/* Appends a line to the text. */
void mcp_result_say(struct mcp_result *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes *r a failure with its reason in one text block; drops what it held before. */
void mcp_result_fail(struct mcp_result *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes *r a refusal of the call as a whole: a JSON-RPC error with this code. */
void mcp_result_refuse(struct mcp_result *r, int code, const char *text);

/* What the text says beyond structured, else the text of the first content block; "": nothing. */
const char *mcp_result_text(const struct mcp_result *r);

/* A content block as a client with these features understands it: kinds that its revision lacks
 * become text. New reference, which may be block itself. */
json_t *mcp_result_block(json_t *block, unsigned features);

/* The CallToolResult for a client with these features (enum mcp_feature); new reference. */
json_t *mcp_result_to_json(const struct mcp_result *r, unsigned features);
