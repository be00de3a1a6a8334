/* Tools that need more than one round (2026-07-28, "Multi round-trip requests"): they answer
 * input_required until they have what they need. */
#include "config.h"

#include "tests/conformance/fixtures.h"

#include "common/rpc/json.h"

#include <string.h>

/* What the user filled in as a text; NULL: nothing usable. */
static const char *filled_text(const struct mcp_tool_call *call, const char *key, const char *name)
{
    return json_string_value(fixture_filled(call->elicitation, key, name));
}

static void ask_name(struct mcp_result *out)
{
    mcp_need_add(&out->need, "user_name", "elicitation/create",
                 fixture_question("What is your name?", "name", "string"));
}

/* Needs no state: an answer is as good without a round before it. */
static void elicitation(const struct mcp_tool_call *call, struct mcp_result *out)
{
    const char *name = filled_text(call, "user_name", "name");

    if (name)
        fixture_say(out, "Hello, %s!", name);
    else
        ask_name(out);
}

static const struct mcp_tool round_elicitation = {
    .name = "test_input_required_result_elicitation",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = elicitation,
};

static void sampling(const struct mcp_tool_call *call, struct mcp_result *out)
{
    const json_t *response = mcp_elicitation_response(call->elicitation, "capital_question");
    const char *text = json_get_string(json_object_get(response, "content"), "text");

    if (text)
        fixture_say(out, "The model says: %s", text);
    else
        mcp_need_add(&out->need, "capital_question", "sampling/createMessage",
                     fixture_sampling("What is the capital of France?", 100));
}

static const struct mcp_tool round_sampling = {
    .name = "test_input_required_result_sampling",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = sampling,
};

/* The number of roots the client told, or -1. */
static int count_roots(const struct mcp_tool_call *call)
{
    const json_t *roots = json_object_get(
        mcp_elicitation_response(call->elicitation, "client_roots"), "roots");

    return json_is_array(roots) ? (int)json_array_size(roots) : -1;
}

static void list_roots(const struct mcp_tool_call *call, struct mcp_result *out)
{
    const json_t *roots = json_object_get(
        mcp_elicitation_response(call->elicitation, "client_roots"), "roots");
    size_t i;
    json_t *root;

    if (count_roots(call) < 0) {
        mcp_need_add(&out->need, "client_roots", "roots/list", json_object());
        return;
    }
    fixture_say(out, "Roots: %d", count_roots(call));
    json_array_foreach(roots, i, root)
    {
        const char *uri = json_get_string(root, "uri");
        fixture_say(out, "%s", uri ? uri : "(no uri)");
    }
}

static const struct mcp_tool round_list_roots = {
    .name = "test_input_required_result_list_roots",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = list_roots,
};

/* Also the one whose state is tampered with: a broken seal never gets here. */
static void request_state(const struct mcp_tool_call *call, struct mcp_result *out)
{
    const char *word = call->elicitation ? json_string_value(call->elicitation->state) : NULL;

    if (word && json_is_true(fixture_filled(call->elicitation, "confirm", "ok"))) {
        fixture_say(out, "%s", word);
        return;
    }
    mcp_need_add(&out->need, "confirm", "elicitation/create",
                 fixture_question("Please confirm", "ok", "boolean"));
    out->need.state = json_string("state-ok");
}

static const struct mcp_tool round_request_state = {
    .name = "test_input_required_result_request_state",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = request_state,
};

static const struct mcp_tool round_tampered_state = {
    .name = "test_input_required_result_tampered_state",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = request_state,
};

static void multiple_inputs(const struct mcp_tool_call *call, struct mcp_result *out)
{
    const char *name = filled_text(call, "user_name", "name");
    const json_t *greeting = json_object_get(
        mcp_elicitation_response(call->elicitation, "greeting"), "content");
    int n_roots = count_roots(call);

    if (name && greeting && n_roots >= 0) {
        const char *text = json_get_string(greeting, "text");
        fixture_say(out, "%s, %s; you have %d roots.", text ? text : "Hello", name, n_roots);
        return;
    }
    ask_name(out);
    mcp_need_add(&out->need, "greeting", "sampling/createMessage",
                 fixture_sampling("Generate a greeting", 50));
    mcp_need_add(&out->need, "client_roots", "roots/list", json_object());
    out->need.state = json_string("asked for three");
}

static const struct mcp_tool round_multiple_inputs = {
    .name = "test_input_required_result_multiple_inputs",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = multiple_inputs,
};

/* Each round's answer travels on in the state. */
static void multi_round(const struct mcp_tool_call *call, struct mcp_result *out)
{
    const char *name = call->elicitation ? json_get_string(call->elicitation->state, "name") : NULL;
    const char *color = filled_text(call, "step2", "color");

    if (!name)
        name = filled_text(call, "step1", "name");
    if (name && color) {
        fixture_say(out, "%s likes %s.", name, color);
    } else if (name) {
        mcp_need_add(&out->need, "step2", "elicitation/create",
                     fixture_question("Step 2: What is your favorite color?", "color", "string"));
        out->need.state = json_pack("{s:i, s:s}", "step", 2, "name", name);
    } else {
        mcp_need_add(&out->need, "step1", "elicitation/create",
                     fixture_question("Step 1: What is your name?", "name", "string"));
        out->need.state = json_pack("{s:i}", "step", 1);
    }
}

static const struct mcp_tool round_multi_round = {
    .name = "test_input_required_result_multi_round",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = multi_round,
};

/* Asks only what this client can be asked. */
static void capabilities(const struct mcp_tool_call *call, struct mcp_result *out)
{
    if (mcp_elicitation_response(call->elicitation, "user_name") ||
        mcp_elicitation_response(call->elicitation, "greeting")) {
        fixture_say(out, "Thank you.");
        return;
    }
    if (mcp_elicitation_possible(call->elicitation, "elicitation/create"))
        ask_name(out);
    if (mcp_elicitation_possible(call->elicitation, "sampling/createMessage"))
        mcp_need_add(&out->need, "greeting", "sampling/createMessage",
                     fixture_sampling("Generate a greeting", 50));
    if (!out->need.requests)
        fixture_say(out, "This client cannot be asked anything.");
}

static const struct mcp_tool round_capabilities = {
    .name = "test_input_required_result_capabilities",
    .describe = fixture_describe,
    .input_schema = fixture_no_arguments,
    .call = capabilities,
};

const struct mcp_tool *const fixture_round_tools[] = {
    &round_elicitation,    &round_sampling,        &round_list_roots,
    &round_request_state,  &round_multiple_inputs, &round_multi_round,
    &round_tampered_state, &round_capabilities,    NULL,
};
