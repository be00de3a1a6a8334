/* What the fixtures share. */
#include "config.h"

#include "tests/conformance/fixtures.h"

#include "common/base/mem.h"
#include "common/mcp/features/content.h"
#include "common/rpc/json.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

char *fixture_describe(void *app)
{
    (void)app;
    return mem_strdup("A fixture of the conformance tests: answers in one given way.");
}

const char fixture_no_arguments[] = "{\"type\":\"object\",\"additionalProperties\":false}";

void fixture_say(struct mcp_result *out, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    json_t *text = json_vsprintf(fmt, args);
    va_end(args);
    mcp_result_add(out, json_pack("{s:s, s:o}", "type", "text", "text", text));
}

json_t *fixture_text(const char *text)
{
    return content_text_new(text, strlen(text));
}

json_t *fixture_image(void)
{
    return json_pack("{s:s, s:s, s:s}", "type", "image", "data", FIXTURE_PNG, "mimeType",
                     "image/png");
}

json_t *fixture_resource(const char *uri, const char *mime_type, const char *text)
{
    return json_pack("{s:s, s:{s:s, s:s, s:s}}", "type", "resource", "resource", "uri", uri,
                     "mimeType", mime_type, "text", text);
}

json_t *fixture_form(const char *message, json_t *take_properties)
{
    json_t *required = json_array();
    const char *name;
    json_t *property;

    json_object_foreach(take_properties, name, property)
        json_array_append_new(required, json_string(name));
    return json_pack("{s:s, s:{s:s, s:o, s:o}}", "message", message, "requestedSchema", "type",
                     "object", "properties", take_properties, "required", required);
}

json_t *fixture_question(const char *message, const char *name, const char *type)
{
    return fixture_form(message, json_pack("{s:{s:s}}", name, "type", type));
}

json_t *fixture_sampling(const char *prompt, int max_tokens)
{
    return json_pack("{s:[{s:s, s:{s:s, s:s}}], s:i}", "messages", "role", "user", "content",
                     "type", "text", "text", prompt, "maxTokens", max_tokens);
}

const json_t *fixture_filled(const struct mcp_elicitation *elicitation, const char *key,
                             const char *name)
{
    const json_t *response = elicitation ? mcp_elicitation_response(elicitation, key) : NULL;
    const char *action = json_get_string(response, "action");

    if (!action || strcmp(action, "accept") != 0)
        return NULL;
    return json_object_get(json_object_get(response, "content"), name);
}

void fixture_sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}
