/* Tools that say something besides their answer: progress, log messages, changes; one that ends its
 * connection early. */
#include "config.h"

#include "tests/conformance/fixtures.h"

#include "common/base/auto.h"
#include "common/mcp/events/event.h"
#include "tests/fakes/mcp_extra.h"

#define PAUSE_MS 50

static void tool_with_progress(const struct mcp_tool_call *call, struct mcp_result *out)
{
    static const double steps[] = {0, 50, 100};

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        mcp_progress(call->channel, steps[i], 100, NULL);
        fixture_sleep_ms(PAUSE_MS);
    }
    fixture_say(out, "Progress was reported.");
}

static const struct mcp_tool test_tool_with_progress = {
    .name = "test_tool_with_progress",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = tool_with_progress,
};

static void tool_with_logging(const struct mcp_tool_call *call, struct mcp_result *out)
{
    static const char *const lines[] = {"Tool execution started", "Tool processing data",
                                        "Tool execution completed"};

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        mcp_log(call->channel, "info", NULL, "%s", lines[i]);
        fixture_sleep_ms(PAUSE_MS);
    }
    fixture_say(out, "Messages were logged.");
}

static const struct mcp_tool test_tool_with_logging = {
    .name = "test_tool_with_logging",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = tool_with_logging,
};

static const struct mcp_tool test_logging_tool = {
    .name = "test_logging_tool",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = tool_with_logging,
};

static void reconnection(const struct mcp_tool_call *call, struct mcp_result *out)
{
    bool gone = mcp_hang_up(call->channel, 500);

    fixture_sleep_ms(2 * PAUSE_MS);
    fixture_say(out, gone ? "Answered after the connection was closed."
                          : "The connection could not be closed early.");
}

static const struct mcp_tool test_reconnection = {
    .name = "test_reconnection",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = reconnection,
};

static void trigger_tool_change(const struct mcp_tool_call *call, struct mcp_result *out)
{
    mcp_publish(call->server, &(struct mcp_event){.kind = MCP_EVENT_TOOLS});
    fixture_say(out, "Everybody was told that the tools have changed.");
}

static const struct mcp_tool test_trigger_tool_change = {
    .name = "test_trigger_tool_change",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = trigger_tool_change,
};

static void trigger_prompt_change(const struct mcp_tool_call *call, struct mcp_result *out)
{
    mcp_publish(call->server, &(struct mcp_event){.kind = MCP_EVENT_PROMPTS});
    fixture_say(out, "Everybody was told that the prompts have changed.");
}

static const struct mcp_tool test_trigger_prompt_change = {
    .name = "test_trigger_prompt_change",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = trigger_prompt_change,
};

const struct mcp_tool *const fixture_telling_tools[] = {
    &test_tool_with_progress,
    &test_tool_with_logging,
    &test_logging_tool,
    &test_reconnection,
    &test_trigger_tool_change,
    &test_trigger_prompt_change,
    NULL,
};
