/*
 * What the official conformance suite expects a server to have: tools, prompts and resources that
 * do nothing but answer in a given way. They register like the real ones, through
 * registry_of_server (fcgi/registry.h), and are linked into tests/conformance/sandcgi-conformance
 * only.
 */
#pragma once

#include "common/mcp/features/offer.h"
#include "common/mcp/features/task.h"
#include "common/mcp/features/tool.h"

#include <jansson.h>

#define FIXTURE_PNG                                                                                \
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJ"  \
    "ggg=="
#define FIXTURE_WAV "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

/* Each array ends with NULL. */
extern const struct mcp_tool *const fixture_content_tools[]; /* fixture_content.c */
extern const struct mcp_tool *const fixture_telling_tools[]; /* fixture_telling.c */
extern const struct mcp_tool *const fixture_asking_tools[];  /* fixture_asking.c: legacy's */
extern const struct mcp_tool *const fixture_round_tools[];   /* fixture_rounds.c: modern's */
extern const struct mcp_tool *const fixture_task_tools[];    /* fixture_tasks.c */
extern const struct mcp_prompt *const fixture_prompts[];     /* fixture_prompts.c */

/* resources/… of the fixtures: everything that begins with test://. */
extern const struct mcp_resources fixture_resources; /* fixture_resources.c */

/* tasks/… of the fixtures: every id that begins so. */
#define FIXTURE_TASK_PREFIX "fixture-"
extern const struct mcp_tasks fixture_tasks;

/* For tools without a description or arguments of their own. */
char *fixture_describe(void *app);
extern const char fixture_no_arguments[];

/* The result is this text. */
void fixture_say(struct mcp_result *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A content block of its own; new references. */
json_t *fixture_text(const char *text);
json_t *fixture_image(void);
json_t *fixture_resource(const char *uri, const char *mime_type, const char *text);

/* {message, requestedSchema} of an elicitation whose form is properties (taken), all required. */
json_t *fixture_form(const char *message, json_t *take_properties);
/* The same with one property of this type. */
json_t *fixture_question(const char *message, const char *name, const char *type);
/* Params of sampling/createMessage. */
json_t *fixture_sampling(const char *prompt, int max_tokens);

/* What the user filled in under name in the form that key asked for; NULL: not accepted, or no such
 * member. */
const json_t *fixture_filled(const struct mcp_elicitation *elicitation, const char *key,
                             const char *name);

void fixture_sleep_ms(int ms);
