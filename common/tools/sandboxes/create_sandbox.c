/* create_sandbox: a container that stays for a conversation. */
#include "config.h"

#include "common/base/buf.h"
#include "common/protocol/client_psandboxes.h"
#include "common/tools/args.h"
#include "common/tools/broker_access.h"
#include "common/tools/conversation_args.h"
#include "common/tools/list.h"
#include "common/tools/report.h"
#include "common/tools/runs/consent.h"
#include "common/tools/sandboxes/sandbox_rows.h"
#include "common/tools/schemas.h"

#define LANGUAGE_MAX 64

struct create_sandbox {
    const char *conversation, *language, *image;
    bool network;
    uint64_t idle_ms;
};

static const struct arg_row create_sandbox_arguments[] = {
    {.name = "conversationId",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct create_sandbox, conversation),
     .required = true,
     .max = CONVERSATION_MAX,
     .help = CONVERSATION_HELP},
    {.name = "language",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct create_sandbox, language),
     .max = LANGUAGE_MAX,
     .help = "The language whose interpreter and libraries it has.",
     .choices = runners_languages},
    {.name = "image",
     .type = ARG_IDENTIFIER,
     .offset = offsetof(struct create_sandbox, image),
     .max = PSANDBOX_IMAGE_MAX,
     .help = "Instead of language: a container image that this server allows."},
    {.name = "network",
     .type = ARG_BOOL,
     .offset = offsetof(struct create_sandbox, network),
     .help = "Give everything in it access to the network."},
    {.name = "idleTimeout",
     .type = ARG_SECONDS,
     .offset = offsetof(struct create_sandbox, idle_ms),
     .max_setting = ARG_SETTING(persistent_idle_ms),
     .initial_setting = ARG_SETTING(persistent_idle_ms),
     .help = "Seconds without a call after which it is closed."},
    {0},
};

static char *describe(void *app)
{
    const struct tools_limits *limits = &((const struct tools_app *)app)->limits;
    AUTO_BUF struct buf out = BUF_INIT(4096);

    buf_add_str(&out,
                "Makes a sandbox that stays: a Linux container in which exec runs commands, and "
                "where processes that are started in the background and files outside /data live "
                "on between calls. /data is that of run_code with the same conversationId. For a "
                "single program run_code is quicker.");
    if (limits->persistent_pause_ms > 0)
        buf_addf(&out,
                 " After %g seconds without a call everything in it is frozen until the next call.",
                 (double)limits->persistent_pause_ms / 1000.0);
    buf_addf(&out,
             " It is closed when nobody has used it for idleTimeout, and in any case after %g "
             "hours; close_sandbox it when it is not needed any more.",
             (double)limits->persistent_total_ms / 3600000.0);
    return buf_take(&out);
}

static int check(const struct create_sandbox *x, const struct tools_app *app, struct err *e)
{
    if (!x->language == !x->image)
        return err_set(e, ERR_INVALID, "arguments 'language' and 'image': one of them is needed");
    if (x->network && !app->limits.network)
        return err_set(e, ERR_DENIED, "argument 'network': this server allows no network");
    return 0;
}

static int create_sandbox(const struct mcp_tool_call *c, void *arguments, struct mcp_result *out,
                          struct err *e)
{
    const struct create_sandbox *x = arguments;
    const struct tools_app *app = c->app;
    const struct broker_client client = tools_client(app, c->cancel_fd);
    const struct broker_psandbox_request want = {.tenant = c->tenant,
                                                 .conversation = x->conversation,
                                                 .language = x->language,
                                                 .image = x->image,
                                                 .network = x->network,
                                                 .idle_ms = x->idle_ms};

    if (check(x, app, e) < 0)
        return -1;
    if (x->network && app->limits.network_ask) {
        int permitted = consent_sandbox_network(c, &out->need, e);
        if (permitted <= 0)
            return permitted;
    }
    out->structured = broker_create_psandbox(&client, &want, e);
    return out->structured ? 0 : -1;
}

const struct mcp_tool tool_create_sandbox = {
    .name = "create_sandbox",
    .title = "Create a sandbox that stays",
    .hints = {.open_world = true},
    .output_schema = schema_sandbox,
    .describe = describe,
    .arguments = create_sandbox_arguments,
    .arguments_size = sizeof(struct create_sandbox),
    .version = runners_version,
    .run = create_sandbox,
};
