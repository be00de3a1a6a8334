#include "config.h"

#include "tests/conformance/fixtures.h"

#include "common/rpc/json.h"

#include <string.h>

static const struct mcp_prompt_argument no_arguments[] = {{0}};

static json_t *user_message(json_t *take_content)
{
    return json_pack("{s:s, s:o}", "role", "user", "content", take_content);
}

static json_t *get_simple(const struct mcp_prompt_call *call, struct mcp_need *need, struct err *e)
{
    (void)call;
    (void)need;
    (void)e;
    return json_pack("[o]", user_message(fixture_text("This is a simple prompt for testing.")));
}

static const struct mcp_prompt simple = {
    .name = "test_simple_prompt",
    .help = "A fixture: one message.",
    .arguments = no_arguments,
    .get = get_simple,
};

static json_t *get_with_arguments(const struct mcp_prompt_call *call, struct mcp_need *need,
                                  struct err *e)
{
    (void)need;
    (void)e;
    json_t *text = json_sprintf("Prompt with arguments: arg1='%s', arg2='%s'",
                                json_get_string(call->arguments, "arg1"),
                                json_get_string(call->arguments, "arg2"));
    return json_pack("[o]", user_message(json_pack("{s:s, s:o}", "type", "text", "text", text)));
}

static json_t *complete_argument(void *app, const char *tenant, const char *argument,
                                 const char *value, const json_t *context)
{
    static const char *const words[] = {"test", "testValue1", "testValue2", "paris", NULL};
    json_t *found = json_array();

    (void)app;
    (void)tenant;
    (void)argument;
    (void)context;
    for (const char *const *word = words; *word; word++) {
        if (strncmp(*word, value, strlen(value)) == 0)
            json_array_append_new(found, json_string(*word));
    }
    return found;
}

static const struct mcp_prompt_argument two_arguments[] = {
    {.name = "arg1", .help = "First of two.", .required = true},
    {.name = "arg2", .help = "Second of two.", .required = true},
    {0},
};

static const struct mcp_prompt with_arguments = {
    .name = "test_prompt_with_arguments",
    .help = "A fixture: a message made from two arguments.",
    .arguments = two_arguments,
    .get = get_with_arguments,
    .complete = complete_argument,
};

static json_t *get_with_resource(const struct mcp_prompt_call *call, struct mcp_need *need,
                                 struct err *e)
{
    (void)need;
    (void)e;
    return json_pack(
        "[o, o]",
        user_message(fixture_resource(json_get_string(call->arguments, "resourceUri"), "text/plain",
                                      "Embedded resource content for testing.")),
        user_message(fixture_text("Please process the embedded resource above.")));
}

static const struct mcp_prompt_argument resource_argument[] = {
    {.name = "resourceUri", .help = "URI to name in the message.", .required = true},
    {0},
};

static const struct mcp_prompt with_resource = {
    .name = "test_prompt_with_embedded_resource",
    .help = "A fixture: a message that holds a resource.",
    .arguments = resource_argument,
    .get = get_with_resource,
};

static json_t *get_with_image(const struct mcp_prompt_call *call, struct mcp_need *need,
                              struct err *e)
{
    (void)call;
    (void)need;
    (void)e;
    return json_pack("[o, o]", user_message(fixture_image()),
                     user_message(fixture_text("Please analyze the image above.")));
}

static const struct mcp_prompt with_image = {
    .name = "test_prompt_with_image",
    .help = "A fixture: a message that holds a picture.",
    .arguments = no_arguments,
    .get = get_with_image,
};

static json_t *get_asking(const struct mcp_prompt_call *call, struct mcp_need *need, struct err *e)
{
    const char *context = json_string_value(
        fixture_filled(call->elicitation, "user_context", "context"));

    (void)e;
    if (!context) {
        mcp_need_add(need, "user_context", "elicitation/create",
                     fixture_question("What context should the prompt use?", "context", "string"));
        return NULL;
    }
    json_t *text = json_sprintf("Use this context: %s", context);
    return json_pack("[o]", user_message(json_pack("{s:s, s:o}", "type", "text", "text", text)));
}

static const struct mcp_prompt asking = {
    .name = "test_input_required_result_prompt",
    .help = "A fixture: a prompt that asks before it answers.",
    .arguments = no_arguments,
    .get = get_asking,
};

const struct mcp_prompt *const fixture_prompts[] = {
    &simple, &with_arguments, &with_resource, &with_image, &asking, NULL,
};
