#include "config.h"

#include "common/mcp/client/elicitation_rounds.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/mcp/client/seal.h"
#include "common/mcp/client/stdio_client.h"
#include "common/mcp/events/sse.h"
#include "common/rpc/json.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

const json_t *mcp_call_capabilities(const struct mcp_call *call)
{
    if (call->era.features & MCP_IS_MODERN)
        return json_object_get(json_object_get(call->params, "_meta"), MCP_META_CAPABILITIES);
    if (call->session)
        return json_object_get(call->session->record, "capabilities");
    return call->origin->stdio_client ? call->origin->stdio_client->capabilities : NULL;
}

int mcp_fail_capability(struct mcp_call *call, const char *method, const json_t *params)
{
    json_t *data = json_object();

    json_object_set_new(data, "requiredCapabilities", mcp_capability_new(method, params));
    return mcp_fail(&call->failure, 400, MCP_MISSING_CAPABILITY, data,
                    "this needs a client that declares %s", method);
}

/* The first question that the client has not declared to answer; NULL: all are fine. */
static const json_t *first_impossible(const json_t *capabilities, const struct mcp_need *need)
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

static int read_modern_ask(struct mcp_call *call, const struct mcp_seal_bind *bind,
                           struct mcp_ask *ask, json_t **out_state)
{
    const json_t *responses = json_object_get(call->params, "inputResponses");
    const json_t *sealed = json_object_get(call->params, "requestState");
    struct err e = ERR_INIT;

    if (responses && !json_is_null(responses) && !json_is_object(responses))
        return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL,
                        "params.inputResponses must be an object");
    ask->responses = json_is_object(responses) ? responses : NULL;
    if (!sealed)
        return 0;
    if (!json_is_string(sealed))
        return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL,
                        "params.requestState must be a string");
    *out_state = mcp_unseal(call->server, bind, json_string_value(sealed),
                            json_string_length(sealed), &e);
    if (!*out_state)
        return mcp_fail(&call->failure, 200, RPC_INVALID_PARAMS, NULL, "%s", e.text);
    ask->state = *out_state;
    return 0;
}

static int input_required_new(struct mcp_call *call, const struct mcp_seal_bind *bind,
                              const struct mcp_need *need, json_t **out_result)
{
    json_t *result = json_object();
    struct err e = ERR_INIT;

    json_object_set_new(result, "resultType", json_string("input_required"));
    if (json_object_size(need->requests) > 0)
        json_object_set(result, "inputRequests", need->requests);
    if (need->state) {
        AUTO_FREE char *sealed = mcp_seal(call->server, bind, need->state, &e);
        if (!sealed) {
            json_decref(result);
            return mcp_fail(&call->failure, 200, RPC_INTERNAL_ERROR, NULL, "%s", e.text);
        }
        json_object_set_new(result, "requestState", json_string(sealed));
    }
    *out_result = result;
    return 0;
}

static enum mcp_asked run_modern(struct mcp_call *call, const struct mcp_asking *a,
                                 json_t **out_result)
{
    const struct mcp_seal_bind bind = {.tenant = call->origin->tenant,
                                       .method = call->method->name,
                                       .name = a->name,
                                       .arguments = a->arguments};
    struct mcp_ask ask = {.capabilities = mcp_call_capabilities(call)};
    AUTO(mcp_need_clear) struct mcp_need need = {.requests = NULL};
    json_auto_t *state = NULL;
    const json_t *impossible;

    if (read_modern_ask(call, &bind, &ask, &state) < 0)
        return MCP_ASKED_REFUSED;
    a->round(a->ctx, &ask, &need);
    if (mcp_need_is_empty(&need))
        return MCP_ASKED_DONE;
    impossible = first_impossible(ask.capabilities, &need);
    if (impossible) {
        mcp_fail_capability(call, json_get_string(impossible, "method"),
                            json_object_get(impossible, "params"));
        return MCP_ASKED_REFUSED;
    }
    return input_required_new(call, &bind, &need, out_result) < 0 ? MCP_ASKED_REFUSED
                                                                  : MCP_ASKED_INPUT;
}

/* ---- legacy: the questions go out as requests, the answers come in by the mailbox or stdin ----
 */

/* The questions of one round that wait for an answer, by the ids they were sent with. */
struct leg {
    struct mcp_call *call;
    struct mcp_channel *channel;
    json_t *waiting;   /* object id → key; owned */
    json_t *responses; /* object key → result; owned */
    unsigned *number;  /* of the call's last question */
};

/* Forms had no "mode" before URLs came; those need an id of their own. */
static json_t *params_for(const struct mcp_call *call, const json_t *params)
{
    json_t *copy = json_is_object(params) ? json_copy((json_t *)(uintptr_t)params) : json_object();
    const char *mode = json_get_string(copy, "mode");
    char id[33];

    if (mode && !(call->era.features & MCP_CAN_ASK_BY_URL)) {
        json_object_del(copy, "mode");
    } else if (mode && strcmp(mode, "url") == 0 && !json_object_get(copy, "elicitationId")) {
        crypto_random_hex(16, id);
        json_object_set_new(copy, "elicitationId", json_string(id));
    }
    return copy;
}

static void next_id(struct leg *leg, char out[MCP_REQUEST_ID_MAX])
{
    struct mcp_stdio_client *stdio_client = leg->call->origin->stdio_client;

    if (stdio_client)
        snprintf(out, MCP_REQUEST_ID_MAX, "sandcgi-%u", ++stdio_client->next_request);
    else
        mcp_mailbox_id(&leg->channel->mailbox, ++*leg->number, out);
}

static int send_question(struct leg *leg, const char *key, const json_t *request, struct err *e)
{
    json_auto_t *message = json_object();
    char id[MCP_REQUEST_ID_MAX];

    next_id(leg, id);
    json_object_set_new(message, "jsonrpc", json_string("2.0"));
    json_object_set_new(message, "id", json_string(id));
    json_object_set(message, "method", json_object_get(request, "method"));
    json_object_set_new(message, "params",
                        params_for(leg->call, json_object_get(request, "params")));
    if (mcp_channel_send(leg->channel, message) < 0)
        return err_set(e, ERR_CANCELLED, "the client has left before it could be asked");
    json_object_set_new(leg->waiting, id, json_string(key));
    return 0;
}

/* Everything but an answer to one of ours is passed over. */
static int take_response(struct leg *leg, const json_t *message, struct err *e)
{
    const char *id = json_get_string(message, "id");
    const char *key = id ? json_get_string(leg->waiting, id) : NULL;
    json_t *result = json_object_get(message, "result");

    if (!key)
        return 0;
    if (result)
        json_object_set(leg->responses, key, result);
    else
        err_set(e, ERR_PROTOCOL, "the client answered the question \"%s\" with an error", key);
    json_object_del(leg->waiting, id); /* and the key with it */
    return result ? 0 : -1;
}

/* The front end waits as long as it may, unless there is nothing more to wait for. */
static json_t *next_on_stdio(const struct mcp_stdio_client *stdio_client, struct deadline turn,
                             struct err *e)
{
    json_t *message = stdio_client->next_message(stdio_client->ctx, deadline_poll_ms(turn));

    if (!message && !deadline_passed(turn))
        err_set(e, ERR_CANCELLED, "the client has left without an answer");
    return message;
}

/* Waits for a while: a new reference, or NULL when nothing came (yet); *e is set when it never
 * will. */
static json_t *next_response(struct leg *leg, struct deadline turn, struct err *e)
{
    const struct mcp_origin *origin = leg->call->origin;
    struct pollfd p[] = {
        {.fd = leg->channel->mailbox.response_fd, .events = POLLIN},
        {.fd = mcp_channel_cancel_fd(leg->channel), .events = POLLRDHUP},
        /* Without a store nobody could take the answer to the call any more. */
        {.fd = origin->out->store ? -1 : origin->cancel_fd, .events = POLLRDHUP},
    };

    if (origin->stdio_client)
        return next_on_stdio(origin->stdio_client, turn, e);
    if (poll(p, ARRAY_LEN(p), deadline_poll_ms(turn)) <= 0)
        return NULL;
    if (p[1].revents || p[2].revents)
        err_set(e, ERR_CANCELLED, "the client has left without an answer");
    return p[0].revents & POLLIN ? mcp_mailbox_take(&leg->channel->mailbox) : NULL;
}

static int wait_for_all(struct leg *leg, struct err *e)
{
    const struct mcp_out *out = leg->call->origin->out;
    struct deadline end = deadline_in_ms(MCP_ASK_WAIT_MS);
    struct deadline turn = deadline_in_ms(SSE_KEEP_ALIVE_MS);

    while (json_object_size(leg->waiting) > 0) {
        json_auto_t *message = next_response(leg, deadline_min(turn, end), e);
        if (e->kind != ERR_NONE || (message && take_response(leg, message, e) < 0))
            return -1;
        if (mcp_channel_is_cancelled(leg->channel))
            return err_set(e, ERR_CANCELLED, "the client has cancelled the call");
        if (deadline_passed(end))
            return err_set(e, ERR_TIMEOUT, "the client's user did not answer in time");
        if (!deadline_passed(turn))
            continue;
        if (out->keep_alive)
            out->keep_alive(out->ctx);
        turn = deadline_in_ms(SSE_KEEP_ALIVE_MS);
    }
    return 0;
}

/* The client may put away what it still shows. */
static void withdraw(struct leg *leg)
{
    const char *id;
    json_t *key;

    json_object_foreach(leg->waiting, id, key)
    {
        json_auto_t *message = json_pack("{s:s, s:s, s:{s:s, s:s}}", "jsonrpc", "2.0", "method",
                                         "notifications/cancelled", "params", "requestId", id,
                                         "reason", "no longer needed");
        mcp_channel_send(leg->channel, message);
    }
}

static int ask_all(struct leg *leg, const struct mcp_need *need, struct err *e)
{
    const char *key;
    json_t *request;

    json_object_foreach(need->requests, key, request)
    {
        if (send_question(leg, key, request, e) < 0)
            return -1;
    }
    if (wait_for_all(leg, e) == 0)
        return 0;
    if (e->kind != ERR_CANCELLED) /* else nobody is there, or nobody wants to hear more */
        withdraw(leg);
    return -1;
}

/* Can this client be asked all of it, and are we able to? */
static int check_questions(struct mcp_call *call, struct mcp_channel *channel,
                           const json_t *capabilities, const struct mcp_need *need, struct err *e)
{
    const json_t *impossible = first_impossible(capabilities, need);
    const struct mcp_stdio_client *stdio_client = call->origin->stdio_client;

    if (impossible) {
        const char *message = json_get_string(json_object_get(impossible, "params"), "message");
        return err_set(
            e, ERR_DENIED,
            "this needs a client that can be asked (%s); this one did not declare it%s%s",
            json_get_string(impossible, "method"), message ? "; the question was: " : "",
            message ? message : "");
    }
    if (json_object_size(need->requests) > MCP_ASK_MAX)
        return err_set(e, ERR_INTERNAL, "more than %d questions at once", MCP_ASK_MAX);
    if (!mcp_channel_can_send(channel) ||
        (stdio_client ? !stdio_client->next_message : !call->session))
        return err_set(e, ERR_DENIED,
                       "this needs to ask the client's user, which takes a session and an Accept "
                       "header with text/event-stream");
    return stdio_client ? 0 : mcp_mailbox_bind(&channel->mailbox, call->session->id, e);
}

/* One of the places for calls that wait for an answer, held as long as the descriptor is open. */
static int take_place(const struct mcp_server *server, struct err *e)
{
    char name[32];

    for (int i = 0; i < server->questions_max; i++) {
        snprintf(name, sizeof name, ".question.%d", i);
        AUTO_FD int fd = openat(server->sessions_fd, name,
                                O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return err_errno(e, "cannot open %s in the sessions' directory", name);
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return TAKE_FD(fd);
    }
    return err_set(e, ERR_BUSY,
                   "this needs to ask the client's user, but too many calls wait for an answer "
                   "already: try again later");
}

/* Asks what is needed; *out_responses (new reference) has all the answers. */
static int run_leg(struct mcp_call *call, struct mcp_channel *channel, const struct mcp_need *need,
                   unsigned *number, json_t **out_responses, struct err *e)
{
    struct leg leg = {.call = call, .channel = channel, .number = number};
    AUTO_FD int place = -1;
    int rc;

    if (json_object_size(need->requests) == 0)
        return 0; /* a state only: the next round at once */
    if (check_questions(call, channel, mcp_call_capabilities(call), need, e) < 0)
        return -1;
    if (call->session && call->server->questions_max != 0 &&
        (place = take_place(call->server, e)) < 0)
        return -1;
    leg.waiting = json_object();
    leg.responses = json_object();
    rc = ask_all(&leg, need, e);
    *out_responses = TAKE_PTR(leg.responses);
    json_decref(leg.waiting);
    return rc;
}

static enum mcp_asked run_legacy(struct mcp_call *call, struct mcp_channel *channel,
                                 const struct mcp_asking *a, struct err *e)
{
    json_auto_t *responses = NULL;
    json_auto_t *state = NULL;
    unsigned number = 0;

    for (int i = 0; i < MCP_ASK_ROUNDS_MAX; i++) {
        AUTO(mcp_need_clear) struct mcp_need need = {.requests = NULL};
        const struct mcp_ask ask = {
            .capabilities = mcp_call_capabilities(call), .responses = responses, .state = state};
        a->round(a->ctx, &ask, &need);
        if (mcp_need_is_empty(&need))
            return MCP_ASKED_DONE;
        json_decref(responses);
        responses = NULL;
        json_decref(state);
        state = TAKE_PTR(need.state);
        if (run_leg(call, channel, &need, &number, &responses, e) < 0)
            return MCP_ASKED_NO_ANSWER;
    }
    err_set(e, ERR_LIMIT, "asked %d times without coming to an end", MCP_ASK_ROUNDS_MAX);
    return MCP_ASKED_NO_ANSWER;
}

enum mcp_asked mcp_asking_run(struct mcp_call *call, struct mcp_channel *channel,
                              const struct mcp_asking *asking, json_t **out_result, struct err *e)
{
    if (call->era.features & MCP_IS_MODERN)
        return run_modern(call, asking, out_result);
    return run_legacy(call, channel, asking, e);
}
