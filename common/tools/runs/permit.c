#include "config.h"

#include "common/tools/runs/permit.h"

#include "common/base/buf.h"
#include "common/base/network.h"
#include "common/base/utf8.h"
#include "common/mcp/features/content.h"
#include "common/rpc/json.h"

#include <string.h>

#define CONSENT_KEY    "network"
#define CONSENT_METHOD "elicitation/create"
#define SHOWN_BYTES    400 /* of the program */

/* Line by line: newlines are kept, other control characters are replaced. */
static void show_code(struct run_text code, struct buf *out)
{
    AUTO_BUF struct buf text = BUF_INIT(3 * SHOWN_BYTES + 1);
    AUTO_BUF struct buf line = BUF_INIT(3 * SHOWN_BYTES + 1);
    size_t len = strnlen(code.data, utf8_cut(code.data, code.len, SHOWN_BYTES));

    utf8_repair(code.data, len, &text);
    for (const char *at = buf_str(&text); *at;) {
        size_t n = strcspn(at, "\n");

        buf_reset(&line);
        buf_add(&line, at, n);
        buf_add_str(out, "\n    ");
        content_clean_name(buf_str(&line), out);
        at += n + (at[n] == '\n');
    }
    if (len < code.len)
        buf_addf(out, "\n(the first %zu of %zu bytes)", len, code.len);
}

/* An answer counts only together with our own question: its state is bound to the call's arguments,
 * so that consent to one program is not taken for another. */
static const json_t *consent_answer(const struct mcp_elicitation *elicitation)
{
    const char *asked = json_string_value(elicitation->state);

    return asked && strcmp(asked, CONSENT_KEY) == 0
               ? mcp_elicitation_response(elicitation, CONSENT_KEY)
               : NULL;
}

static int consent(const struct mcp_tool_call *c, const struct buf *message, const char *refused,
                   struct mcp_need *need, struct err *e)
{
    const json_t *answer;

    if (!c->elicitation)
        return err_set(e, ERR_DENIED,
                       "argument 'network': this server gives network access only when the user "
                       "agrees, and no user can be asked");
    answer = consent_answer(c->elicitation);
    if (!answer) {
        mcp_need_add(need, CONSENT_KEY, CONSENT_METHOD,
                     json_pack("{s:s, s:{s:s, s:{s:{s:s, s:s, s:s, s:b}}, s:[s]}}", "message",
                               buf_str(message), "requestedSchema", "type", "object", "properties",
                               "allow", "type", "boolean", "title", "Allow network access",
                               "description", "Only for what was asked", "default", 0, "required",
                               "allow"));
        need->state = json_string(CONSENT_KEY);
        return 0;
    }
    const char *action = json_get_string(answer, "action");
    const json_t *allow = json_object_get(json_object_get(answer, "content"), "allow");

    if (!action || strcmp(action, "accept") != 0 || !json_is_true(allow))
        return err_set(e, ERR_DENIED,
                       "argument 'network': the user did not agree to network access; %s", refused);
    return 1;
}

int permit_network(const struct mcp_tool_call *c, bool wanted, enum network_tier *out,
                   struct err *e)
{
    const struct tools_app *app = c->app;
    enum network_tier most = c->network ? network_named(c->network) : NETWORK_LAN;

    *out = !wanted ? NETWORK_NONE : most < app->limits.network ? most : app->limits.network;
    if (wanted && *out == NETWORK_NONE)
        return err_set(e, ERR_DENIED, "argument 'network': this server allows no network");
    return 0;
}

bool permit_single_use_only(const struct mcp_tool_call *c)
{
    return c->reuse && strcmp(c->reuse, "conversation") != 0;
}

int consent_network(const struct mcp_tool_call *c, const char *language, struct run_text code,
                    struct mcp_need *need, struct err *e)
{
    AUTO_BUF struct buf message = BUF_INIT(16 * SHOWN_BYTES);

    buf_addf(&message,
             "A program in %s asks for access to the network. It could then fetch data from "
             "anywhere and send the files of its sandbox anywhere. Allow it for this run?\n",
             language);
    show_code(code, &message);
    return consent(c, &message, "the program was not run", need, e);
}

int consent_sandbox_network(const struct mcp_tool_call *c, struct mcp_need *need, struct err *e)
{
    AUTO_BUF struct buf message = BUF_INIT(1024);

    buf_add_str(&message,
                "A persistent sandbox asks for access to the network. Everything that will run "
                "in it could then fetch data from anywhere and send its files anywhere. Allow it "
                "until the sandbox is closed?");
    return consent(c, &message, "the sandbox was not made", need, e);
}

/* ---- environment variables ---- */

/* Names, separated by blanks; a trailing * stands for anything. */
static const struct {
    const char *names, *why;
} denied[] = {
    {"LD_* DYLD_* GCONV_PATH GETCONF_DIR OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES",
     "it changes how programs are loaded"},
    {"GLIBC_TUNABLES MALLOC_* LOCPATH NLSPATH HOSTALIASES LOCALDOMAIN RES_OPTIONS RESOLV_HOST_CONF",
     "it changes the C library's inner workings"},
    {"PATH HOME", "it changes where programs or their settings are found"},
    {"CDPATH ENV IFS PS4 PROMPT_COMMAND SHELLOPTS BASHOPTS BASH_* GLOBIGNORE",
     "it changes how the shell starts"},
    {"PYTHON*", "it changes how Python starts"},
    {"BUN_* NODE_* NPM_* npm_* DENO_* TS_NODE_*", "it changes how the JavaScript runtime starts"},
    {"PERL5* PERLLIB PERLIO* RUBYOPT RUBYLIB LUA_* PHPRC PHP_INI_SCAN_DIR R_* JAVA_TOOL_OPTIONS "
     "JDK_JAVA_OPTIONS _JAVA_OPTIONS CLASSPATH",
     "it changes how the interpreter starts"},
};

static bool env_is_listed(const char *names, const char *name)
{
    for (const char *at = names; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");

        if (at[len - 1] == '*' ? strncmp(at, name, len - 1) == 0
                               : strlen(name) == len && memcmp(at, name, len) == 0)
            return true;
    }
    return false;
}

/* Set by the server. A caller's value is not an error: clients written for other servers send it.
 */
#define ENV_OURS "FILE_BASE_URL"

#define ENV_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

static int env_fail_name(const char *name, struct err *e)
{
    AUTO_BUF struct buf shown = BUF_INIT(3 * ENV_NAME_MAX);

    content_clean_name(name, &shown);
    return err_set(
        e, ERR_INVALID,
        "environment variable '%.160s' is not a valid name: letters, digits and '_', not "
        "starting with a digit, at most %d characters",
        buf_str(&shown), ENV_NAME_MAX);
}

static int env_check_name(const char *name, struct err *e)
{
    size_t len = strspn(name, ENV_LETTERS);

    if (len == 0 || len > ENV_NAME_MAX || name[len] || (name[0] >= '0' && name[0] <= '9'))
        return env_fail_name(name, e);
    for (size_t i = 0; i < ARRAY_LEN(denied); i++) {
        if (env_is_listed(denied[i].names, name))
            return err_set(e, ERR_DENIED, "environment variable '%s' cannot be set: %s", name,
                           denied[i].why);
    }
    return 0;
}

int env_filter(struct arg_map *map, struct err *e)
{
    size_t kept = 0;

    for (size_t i = 0; i < map->n; i++) {
        if (env_check_name(map->items[i].name, e) < 0)
            return -1;
        if (strcmp(map->items[i].name, ENV_OURS) != 0)
            map->items[kept++] = map->items[i];
    }
    map->n = kept;
    return 0;
}
