/* Tools that ask the client's model or user once and tell what came back. */
#include "config.h"

#include "tests/conformance/fixtures.h"

#include "common/base/auto.h"
#include "common/rpc/json.h"

static const char *const needs_elicitation[] = {"elicitation/create", NULL};
static const char *const needs_sampling[] = {"sampling/createMessage", NULL};

#define ONE_STRING(name)                                                                           \
    "{\"type\":\"object\",\"properties\":{\"" name "\":{\"type\":\"string\","                      \
    "\"description\":\"Passed on to the client.\"}},\"required\":[\"" name "\"]}"

/* Tells a response as it came. */
static void tell_response(struct mcp_result *out, const json_t *response)
{
    const char *action = json_get_string(response, "action");
    AUTO_FREE char *content = json_dumps(json_object_get(response, "content"), JSON_ENCODE_ANY);

    fixture_say(out, "User response: action=%s, content=%s", action ? action : "(none)",
                content ? content : "(none)");
}

static void sampling(const struct mcp_tool_call *call, struct mcp_result *out)
{
    const json_t *response = mcp_elicitation_response(call->elicitation, "answer");
    const char *prompt = json_get_string(call->arguments, "prompt");

    if (response) {
        const char *text = json_get_string(json_object_get(response, "content"), "text");
        fixture_say(out, "LLM response: %s", text ? text : "(no text)");
    } else if (!prompt) {
        mcp_result_fail(out, "prompt must be a string");
    } else {
        mcp_need_add(&out->need, "answer", "sampling/createMessage", fixture_sampling(prompt, 100));
    }
}

static const struct mcp_tool test_sampling = {
    .name = "test_sampling",
    .requires = needs_sampling,
    .describe = fixture_describe,
    .input_schema = ONE_STRING("prompt"),
    .call = sampling,
};

static void elicitation(const struct mcp_tool_call *call, struct mcp_result *out)
{
    const json_t *response = mcp_elicitation_response(call->elicitation, "answer");
    const char *message = json_get_string(call->arguments, "message");

    if (response) {
        tell_response(out, response);
    } else if (!message) {
        mcp_result_fail(out, "message must be a string");
    } else {
        json_t *properties = json_pack("{s:{s:s, s:s}, s:{s:s, s:s}}", "username", "type", "string",
                                       "description", "User's response", "email", "type", "string",
                                       "description", "User's email address");
        mcp_need_add(&out->need, "answer", "elicitation/create", fixture_form(message, properties));
    }
}

static const struct mcp_tool test_elicitation = {
    .name = "test_elicitation",
    .requires = needs_elicitation,
    .describe = fixture_describe,
    .input_schema = ONE_STRING("message"),
    .call = elicitation,
};

/* A form given as JSON text: asked once, then told. */
static void ask_form(const struct mcp_tool_call *call, struct mcp_result *out, const char *form)
{
    const json_t *response = mcp_elicitation_response(call->elicitation, "answer");

    if (response)
        tell_response(out, response);
    else
        mcp_need_add(&out->need, "answer", "elicitation/create", json_loads(form, 0, NULL));
}

static void defaults(const struct mcp_tool_call *call, struct mcp_result *out)
{
    ask_form(call, out,
             "{\"message\":\"Please review the defaults\",\"requestedSchema\":{\"type\":\"object\","
             "\"properties\":{"
             "\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"
             "\"age\":{\"type\":\"integer\",\"default\":30},"
             "\"score\":{\"type\":\"number\",\"default\":95.5},"
             "\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"
             "\"default\":\"active\"},"
             "\"verified\":{\"type\":\"boolean\",\"default\":true}}}}");
}

static const struct mcp_tool test_elicitation_sep1034_defaults = {
    .name = "test_elicitation_sep1034_defaults",
    .requires = needs_elicitation,
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = defaults,
};

static void enums(const struct mcp_tool_call *call, struct mcp_result *out)
{
    ask_form(call, out,
             "{\"message\":\"Please choose\",\"requestedSchema\":{\"type\":\"object\","
             "\"properties\":{"
             "\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\""
             "]},"
             "\"titledSingle\":{\"type\":\"string\",\"oneOf\":["
             "{\"const\":\"value1\",\"title\":\"First Option\"},"
             "{\"const\":\"value2\",\"title\":\"Second Option\"},"
             "{\"const\":\"value3\",\"title\":\"Third Option\"}]},"
             "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],"
             "\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
             "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
             "\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
             "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":["
             "{\"const\":\"value1\",\"title\":\"First Choice\"},"
             "{\"const\":\"value2\",\"title\":\"Second Choice\"},"
             "{\"const\":\"value3\",\"title\":\"Third Choice\"}]}}}}}");
}

static const struct mcp_tool test_elicitation_sep1330_enums = {
    .name = "test_elicitation_sep1330_enums",
    .requires = needs_elicitation,
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = enums,
};

static void missing_capability(const struct mcp_tool_call *call, struct mcp_result *out)
{
    (void)call;
    fixture_say(out, "The client can sample.");
}

static const struct mcp_tool test_missing_capability = {
    .name = "test_missing_capability",
    .requires = needs_sampling,
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = missing_capability,
};

static void streaming_elicitation(const struct mcp_tool_call *call, struct mcp_result *out)
{
    const json_t *response = mcp_elicitation_response(call->elicitation, "answer");

    if (response)
        tell_response(out, response);
    else
        mcp_need_add(&out->need, "answer", "elicitation/create",
                     fixture_question("May this go on?", "ok", "boolean"));
}

static const struct mcp_tool test_streaming_elicitation = {
    .name = "test_streaming_elicitation",
    .requires = needs_elicitation,
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = streaming_elicitation,
};

const struct mcp_tool *const fixture_asking_tools[] = {
    &test_sampling,
    &test_elicitation,
    &test_elicitation_sep1034_defaults,
    &test_elicitation_sep1330_enums,
    &test_missing_capability,
    &test_streaming_elicitation,
    NULL,
};
