/* Tools that answer with one kind of content each. */
#include "config.h"

#include "tests/conformance/fixtures.h"

#include "common/rpc/json.h"

static void simple_text(const struct mcp_tool_call *call, struct mcp_result *out)
{
    (void)call;
    fixture_say(out, "This is a simple text response for testing.");
}

static const struct mcp_tool test_simple_text = {
    .name = "test_simple_text",
    .hints = {.read_only = true},
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = simple_text,
};

static void image_content(const struct mcp_tool_call *call, struct mcp_result *out)
{
    (void)call;
    mcp_result_add(out, fixture_image());
}

static const struct mcp_tool test_image_content = {
    .name = "test_image_content",
    .hints = {.read_only = true},
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = image_content,
};

static void audio_content(const struct mcp_tool_call *call, struct mcp_result *out)
{
    (void)call;
    mcp_result_add(out, json_pack("{s:s, s:s, s:s}", "type", "audio", "data", FIXTURE_WAV,
                                  "mimeType", "audio/wav"));
}

static const struct mcp_tool test_audio_content = {
    .name = "test_audio_content",
    .hints = {.read_only = true},
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = audio_content,
};

static void embedded_resource(const struct mcp_tool_call *call, struct mcp_result *out)
{
    (void)call;
    mcp_result_add(out, fixture_resource("test://embedded-resource", "text/plain",
                                         "This is an embedded resource content."));
}

static const struct mcp_tool test_embedded_resource = {
    .name = "test_embedded_resource",
    .hints = {.read_only = true},
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = embedded_resource,
};

static void multiple_content_types(const struct mcp_tool_call *call, struct mcp_result *out)
{
    (void)call;
    fixture_say(out, "Multiple content types test:");
    mcp_result_add(out, fixture_image());
    mcp_result_add(out, fixture_resource("test://mixed-content-resource", "application/json",
                                         "{\"test\":\"data\",\"value\":123}"));
}

static const struct mcp_tool test_multiple_content_types = {
    .name = "test_multiple_content_types",
    .hints = {.read_only = true},
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = multiple_content_types,
};

static void error_handling(const struct mcp_tool_call *call, struct mcp_result *out)
{
    (void)call;
    mcp_result_fail(out, "This tool intentionally returns an error for testing");
}

static const struct mcp_tool test_error_handling = {
    .name = "test_error_handling",
    .hints = {.read_only = true},
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = error_handling,
};

/* A schema with everything of its dialect that must reach clients unchanged. */
static const char schema_2020_12[] =
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
    "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{"
    "\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"
    "\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"
    "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"
    "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
    "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"
    "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"
    "\"required\":[\"contactMethod\"]},"
    "\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},"
    "\"additionalProperties\":false}";

static void json_schema_2020_12(const struct mcp_tool_call *call, struct mcp_result *out)
{
    (void)call;
    fixture_say(out, "JSON Schema 2020-12 tool called");
}

static const struct mcp_tool json_schema_2020_12_tool = {
    .name = "json_schema_2020_12_tool",
    .hints = {.read_only = true},
    .describe = fixture_describe,
    .input_schema = schema_2020_12,
    .call = json_schema_2020_12,
};

/* Clients repeat the region in the header Mcp-Param-Region. */
static const char region_schema[] =
    "{\"type\":\"object\",\"properties\":{\"region\":{\"type\":\"string\","
    "\"description\":\"Any text.\",\"x-mcp-header\":\"Region\"}},\"required\":[\"region\"]}";

static void x_mcp_header(const struct mcp_tool_call *call, struct mcp_result *out)
{
    const char *region = json_get_string(call->arguments, "region");

    fixture_say(out, "region: %s", region ? region : "(none)");
}

static const struct mcp_tool test_x_mcp_header = {
    .name = "test_x_mcp_header",
    .hints = {.read_only = true},
    .mirrors_arguments = true,
    .describe = fixture_describe,
    .input_schema = region_schema,
    .call = x_mcp_header,
};

const struct mcp_tool *const fixture_content_tools[] = {
    &test_simple_text,         &test_image_content,          &test_audio_content,
    &test_embedded_resource,   &test_multiple_content_types, &test_error_handling,
    &json_schema_2020_12_tool, &test_x_mcp_header,           NULL,
};
