#include "config.h"

#include "common/mcp/client/elicitation.h"

#include "common/rpc/json.h"

#include <string.h>

/* Which capability of the client a method belongs to. */
static const struct {
    const char *method, *capability;
} methods[] = {
    {"elicitation/create", "elicitation"},
    {"sampling/createMessage", "sampling"},
    {"roots/list", "roots"},
};

void mcp_need_clear(struct mcp_need *n)
{
    json_decref(n->requests);
    json_decref(n->state);
    *n = (struct mcp_need){.requests = NULL};
}

bool mcp_need_is_empty(const struct mcp_need *n)
{
    return json_object_size(n->requests) == 0 && !n->state;
}

static const char *capability_of(const char *method)
{
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(methods[i].method, method) == 0)
            return methods[i].capability;
    return NULL;
}

/* An elicitation capability that names no mode means forms. */
static bool has_mode(const json_t *elicitation, const char *mode)
{
    if (json_is_object(json_object_get(elicitation, mode)))
        return true;
    return strcmp(mode, "form") == 0 && !json_object_get(elicitation, "url");
}

static const char *mode_of(const json_t *params)
{
    const char *mode = json_get_string(params, "mode");

    return mode ? mode : "form";
}

bool mcp_client_can(const json_t *capabilities, const char *method, const json_t *params)
{
    const char *name = capability_of(method);
    const json_t *has = name ? json_object_get(capabilities, name) : NULL;

    if (!json_is_object(has))
        return false;
    return strcmp(name, "elicitation") != 0 || has_mode(has, mode_of(params));
}

json_t *mcp_capability_new(const char *method, const json_t *params)
{
    const char *name = capability_of(method);
    json_t *required = json_object();
    json_t *value = json_object();

    if (name && strcmp(name, "elicitation") == 0)
        json_object_set_new(value, mode_of(params), json_object());
    json_object_set_new(required, name ? name : method, value);
    return required;
}

bool mcp_ask_possible(const struct mcp_ask *ask, const char *method)
{
    return ask && mcp_client_can(ask->capabilities, method, NULL);
}

const json_t *mcp_ask_response(const struct mcp_ask *ask, const char *key)
{
    const json_t *response = ask ? json_object_get(ask->responses, key) : NULL;

    return json_is_object(response) ? response : NULL;
}

void mcp_need_add(struct mcp_need *n, const char *key, const char *method, json_t *take_params)
{
    json_t *request = json_object();

    if (!n->requests)
        n->requests = json_object();
    json_object_set_new(request, "method", json_string(method));
    json_object_set_new(request, "params", take_params);
    json_object_set_new(n->requests, key, request);
}
