#include "config.h"

#include "common/mcp/client/elicitation.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/node.h"
#include "common/mcp/client/client_channel.h"
#include "common/mcp/client/seal.h"
#include "common/mcp/session/stream.h"
#include "common/rpc/json.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

/* ---- for handlers ---- */

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

void mcp_need_add(struct mcp_need *n, const char *key, const char *method, json_t *take_params)
{
    if (!n->requests)
        n->requests = json_object();
    json_object_set_new(n->requests, key,
                        json_pack("{s:s, s:o*}", "method", method, "params", take_params));
}

bool mcp_elicitation_possible(const struct mcp_elicitation *elicitation, const char *method)
{
    return elicitation && mcp_client_can(elicitation->capabilities, method, NULL);
}

const json_t *mcp_elicitation_response(const struct mcp_elicitation *elicitation, const char *key)
{
    const json_t *response = elicitation ? json_object_get(elicitation->responses, key) : NULL;

    return json_is_object(response) ? response : NULL;
}

/* ---- capabilities ---- */

/* The client's capability that a method belongs to; NULL: none. */
static const char *capability_of(const char *method)
{
    static const struct {
        const char *method, *capability;
    } methods[] = {
        {"elicitation/create", "elicitation"},
        {"sampling/createMessage", "sampling"},
        {"roots/list", "roots"},
    };

    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(methods[i].method, method) == 0)
            return methods[i].capability;
    return NULL;
}

static const char *mode_of(const json_t *params)
{
    const char *mode = json_get_string(params, "mode");

    return mode ? mode : "form";
}

bool mcp_client_can(const json_t *capabilities, const char *method, const json_t *params)
{
    const char *name = capability_of(method), *mode = mode_of(params);
    const json_t *has = name ? json_object_get(capabilities, name) : NULL;

    if (!json_is_object(has) || strcmp(name, "elicitation") != 0)
        return json_is_object(has);
    /* An elicitation capability that names no mode means forms. */
    return json_is_object(json_object_get(has, mode)) ||
           (strcmp(mode, "form") == 0 && !json_object_get(has, "url"));
}

int mcp_fail_capability(struct mcp_call *call, const char *method, const json_t *params)
{
    const char *name = capability_of(method);
    bool has_mode = name && strcmp(name, "elicitation") == 0;
    json_t *modes = has_mode ? json_pack("{s:{}}", mode_of(params)) : json_object();

    return mcp_fail(&call->failure, 400, MCP_MISSING_CAPABILITY,
                    json_pack("{s:{s:o}}", "requiredCapabilities", name ? name : method, modes),
                    "this needs a client that declares %s", method);
}

/* The first request that the client has not declared to support; NULL: it supports all. */
static const json_t *first_unsupported(const json_t *capabilities, const struct mcp_need *need)
{
    const char *key;
    json_t *request;

    json_object_foreach((json_t *)(uintptr_t)need->requests, key, request)
    {
        if (!mcp_client_can(capabilities, json_get_string(request, "method"),
                            json_object_get(request, "params")))
            return request;
    }
    return NULL;
}

/* ---- modern: one round per request ---- */

static int read_modern_round(struct mcp_call *call, const struct mcp_seal_bind *bind,
                             struct mcp_elicitation *elicitation, json_t **out_state)
{
    const json_t *responses = json_object_get(call->params, "inputResponses");
    const json_t *sealed = json_object_get(call->params, "requestState");
    struct err e = ERR_INIT;

    if (responses && !json_is_null(responses) && !json_is_object(responses))
        return mcp_fail_params(call, "params.inputResponses must be an object");
    elicitation->responses = json_is_object(responses) ? responses : NULL;
    if (!sealed)
        return 0;
    if (!json_is_string(sealed))
        return mcp_fail_params(call, "params.requestState must be a string");
    *out_state = mcp_unseal(call->server, bind, json_string_value(sealed),
                            json_string_length(sealed), &e);
    if (!*out_state)
        return mcp_fail_params(call, "%s", e.text);
    elicitation->state = *out_state;
    return 0;
}

static int input_required_new(struct mcp_call *call, const struct mcp_seal_bind *bind,
                              const struct mcp_need *need, json_t **out_result)
{
    bool asks = json_object_size(need->requests) > 0;
    AUTO_FREE char *sealed = NULL;
    struct err e = ERR_INIT;

    if (need->state && !(sealed = mcp_seal(call->server, bind, need->state, &e)))
        return mcp_fail(&call->failure, 200, RPC_INTERNAL_ERROR, NULL, "%s", e.text);
    *out_result = json_pack("{s:s, s:O*, s:s*}", "resultType", "input_required", "inputRequests",
                            asks ? need->requests : NULL, "requestState", sealed);
    return 0;
}

static enum mcp_rounds_end run_modern(struct mcp_call *call, const struct mcp_rounds *rounds,
                                      json_t **out_result)
{
    const struct mcp_seal_bind bind = {.tenant = call->origin->tenant,
                                       .method = call->method->name,
                                       .name = rounds->name,
                                       .arguments = rounds->arguments};
    struct mcp_elicitation elicitation = {.capabilities = mcp_call_capabilities(call)};
    AUTO(mcp_need_clear) struct mcp_need need = {.requests = NULL};
    json_auto_t *state = NULL;
    const json_t *unsupported;

    if (read_modern_round(call, &bind, &elicitation, &state) < 0)
        return MCP_ROUNDS_REFUSED;
    rounds->round(rounds->ctx, &elicitation, &need);
    if (mcp_need_is_empty(&need))
        return MCP_ROUNDS_DONE;
    unsupported = first_unsupported(elicitation.capabilities, &need);
    if (unsupported) {
        mcp_fail_capability(call, json_get_string(unsupported, "method"),
                            json_object_get(unsupported, "params"));
        return MCP_ROUNDS_REFUSED;
    }
    return input_required_new(call, &bind, &need, out_result) < 0 ? MCP_ROUNDS_REFUSED
                                                                  : MCP_ROUNDS_INPUT_REQUIRED;
}

/* ---- legacy: requests to the client; its responses arrive in the mailbox or on stdin ---- */

/* The requests of one round that have no response yet, by the ids they were sent with. */
struct round {
    struct mcp_call *call;
    struct mcp_channel *channel;
    json_t *waiting;   /* object id → key; owned */
    json_t *responses; /* object key → result; owned */
    unsigned *number;  /* of the call's last request */
};

/* Forms had no "mode" before URLs came; those need an id of their own. */
static json_t *params_for(const struct mcp_call *call, const json_t *params)
{
    json_t *copy = json_is_object(params) ? json_copy((json_t *)(uintptr_t)params) : json_object();
    const char *mode = json_get_string(copy, "mode");
    char id[33];

    if (mode && !(call->era.features & MCP_CAN_ELICIT_URL)) {
        json_object_del(copy, "mode");
    } else if (mode && strcmp(mode, "url") == 0 && !json_object_get(copy, "elicitationId")) {
        crypto_random_hex(16, id);
        json_object_set_new(copy, "elicitationId", json_string(id));
    }
    return copy;
}

static int send_request(struct round *round, const char *key, const json_t *request, struct err *e)
{
    struct mcp_stdio_client *stdio_client = round->call->origin->stdio_client;
    char bare[MCP_REQUEST_ID_MAX], id[MCP_REQUEST_ID_MAX + NODE_NAME_MAX + 1];

    if (stdio_client) {
        snprintf(id, sizeof id, "sandcgi-%u-%u", stdio_client->call, ++stdio_client->next_request);
    } else {
        snprintf(bare, sizeof bare, "%s-%u", round->channel->mailbox.hex, ++*round->number);
        node_add(bare, id, sizeof id);
    }
    json_auto_t *message = json_pack("{s:s, s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id, "method",
                                     json_object_get(request, "method"), "params",
                                     params_for(round->call, json_object_get(request, "params")));
    if (mcp_channel_send(round->channel, message) < 0)
        return err_set(e, ERR_CANCELLED, "the client has left before it could be asked");
    json_object_set_new(round->waiting, id, json_string(key));
    return 0;
}

/* Ignores everything but a response to a request of this round. */
static int take_response(struct round *round, const json_t *message, struct err *e)
{
    const char *id = json_get_string(message, "id");
    const char *key = id ? json_get_string(round->waiting, id) : NULL;
    json_t *result = json_object_get(message, "result");

    if (!key)
        return 0;
    if (result)
        json_object_set(round->responses, key, result);
    else
        err_set(e, ERR_PROTOCOL, "the client answered the question \"%s\" with an error", key);
    json_object_del(round->waiting, id); /* and the key with it */
    return result ? 0 : -1;
}

/* Waits until the deadline: a new reference, or NULL when nothing came (yet); *e is set when no
 * response can come. */
static json_t *next_response(struct round *round, struct deadline d, struct err *e)
{
    const struct mcp_origin *origin = round->call->origin;
    const struct mcp_stdio_client *stdio_client = origin->stdio_client;
    struct pollfd p[] = {
        {.fd = round->channel->mailbox.response_fd, .events = POLLIN},
        {.fd = mcp_channel_cancel_fd(round->channel), .events = POLLRDHUP},
        /* Without a store the answer to the call would be lost. */
        {.fd = origin->out->store ? -1 : origin->cancel_fd, .events = POLLRDHUP},
    };

    json_t *message = NULL;
    bool left;

    if (stdio_client) {
        message = stdio_client->next_message(stdio_client->ctx, deadline_poll_ms(d));
        left = !message && !deadline_passed(d);
    } else {
        if (poll(p, ARRAY_LEN(p), deadline_poll_ms(d)) <= 0)
            return NULL;
        left = p[1].revents || p[2].revents;
        if (p[0].revents & POLLIN)
            message = mcp_mailbox_take(&round->channel->mailbox);
    }
    if (left)
        err_set(e, ERR_CANCELLED, "the client has left without an answer");
    return message;
}

static int wait_for_all(struct round *round, struct err *e)
{
    const struct mcp_out *out = round->call->origin->out;
    struct deadline end = deadline_in_ms(MCP_ROUND_WAIT_MS);
    struct deadline keep_alive = deadline_in_ms(SSE_KEEP_ALIVE_MS);

    while (json_object_size(round->waiting) > 0) {
        json_auto_t *message = next_response(round, deadline_min(keep_alive, end), e);
        if (e->kind != ERR_NONE || (message && take_response(round, message, e) < 0))
            return -1;
        if (mcp_channel_is_cancelled(round->channel))
            return err_set(e, ERR_CANCELLED, "the client has cancelled the call");
        if (deadline_passed(end))
            return err_set(e, ERR_TIMEOUT, "the client's user did not answer in time");
        if (!deadline_passed(keep_alive))
            continue;
        if (out->keep_alive)
            out->keep_alive(out->ctx);
        keep_alive = deadline_in_ms(SSE_KEEP_ALIVE_MS);
    }
    return 0;
}

/* Lets the client close the forms that it still shows. */
static void withdraw_requests(struct round *round)
{
    const char *id;
    json_t *key;

    json_object_foreach(round->waiting, id, key)
    {
        json_auto_t *message = rpc_notification_new(
            "notifications/cancelled",
            json_pack("{s:s, s:s}", "requestId", id, "reason", "no longer needed"));
        mcp_channel_send(round->channel, message);
    }
}

static int send_all(struct round *round, const struct mcp_need *need, struct err *e)
{
    const char *key;
    json_t *request;

    json_object_foreach(need->requests, key, request)
    {
        if (send_request(round, key, request, e) < 0)
            return -1;
    }
    if (wait_for_all(round, e) == 0)
        return 0;
    if (e->kind != ERR_CANCELLED) /* else the client has left, or wants no more messages */
        withdraw_requests(round);
    return -1;
}

/* Does the client support all requests, and can it be reached? */
static int check_requests(struct mcp_call *call, struct mcp_channel *channel,
                          const json_t *capabilities, const struct mcp_need *need, struct err *e)
{
    const json_t *unsupported = first_unsupported(capabilities, need);
    const struct mcp_stdio_client *stdio_client = call->origin->stdio_client;

    if (unsupported) {
        const char *message = json_get_string(json_object_get(unsupported, "params"), "message");
        return err_set(
            e, ERR_DENIED,
            "this needs a client that can be asked (%s); this one did not declare it%s%s",
            json_get_string(unsupported, "method"), message ? "; the question was: " : "",
            message ? message : "");
    }
    if (json_object_size(need->requests) > MCP_ROUND_REQUESTS_MAX)
        return err_set(e, ERR_INTERNAL, "more than %d requests to the client at once",
                       MCP_ROUND_REQUESTS_MAX);
    if (!mcp_channel_can_send(channel) ||
        (stdio_client ? !stdio_client->next_message : !call->session))
        return err_set(e, ERR_DENIED,
                       "this needs to ask the client's user, which takes a session and an Accept "
                       "header with text/event-stream");
    return stdio_client ? 0 : mcp_mailbox_bind(&channel->mailbox, call->session->id, e);
}

/* *out_responses (new reference) has all the responses. */
static int round_run(struct mcp_call *call, struct mcp_channel *channel,
                     const struct mcp_need *need, unsigned *number, json_t **out_responses,
                     struct err *e)
{
    struct round round = {.call = call, .channel = channel, .number = number};
    int rc;

    if (json_object_size(need->requests) == 0)
        return 0; /* a state only: the next round follows at once */
    if (check_requests(call, channel, mcp_call_capabilities(call), need, e) < 0)
        return -1;
    round.waiting = json_object();
    round.responses = json_object();
    rc = send_all(&round, need, e);
    *out_responses = TAKE_PTR(round.responses);
    json_decref(round.waiting);
    return rc;
}

static enum mcp_rounds_end run_legacy(struct mcp_call *call, struct mcp_channel *channel,
                                      const struct mcp_rounds *rounds, struct err *e)
{
    json_auto_t *responses = NULL;
    json_auto_t *state = NULL;
    unsigned number = 0;

    for (int i = 0; i < MCP_ROUNDS_MAX; i++) {
        AUTO(mcp_need_clear) struct mcp_need need = {.requests = NULL};
        const struct mcp_elicitation elicitation = {
            .capabilities = mcp_call_capabilities(call), .responses = responses, .state = state};
        rounds->round(rounds->ctx, &elicitation, &need);
        if (mcp_need_is_empty(&need))
            return MCP_ROUNDS_DONE;
        json_decref(responses);
        responses = NULL;
        json_decref(state);
        state = TAKE_PTR(need.state);
        if (round_run(call, channel, &need, &number, &responses, e) < 0)
            return MCP_ROUNDS_NO_ANSWER;
    }
    err_set(e, ERR_LIMIT, "the call still needs input after %d rounds", MCP_ROUNDS_MAX);
    return MCP_ROUNDS_NO_ANSWER;
}

enum mcp_rounds_end mcp_rounds_run(struct mcp_call *call, struct mcp_channel *channel,
                                   const struct mcp_rounds *rounds, json_t **out_result,
                                   struct err *e)
{
    if (call->era.features & MCP_IS_MODERN)
        return run_modern(call, rounds, out_result);
    return run_legacy(call, channel, rounds, e);
}
