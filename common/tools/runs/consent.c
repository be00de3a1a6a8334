#include "config.h"

#include "common/tools/runs/consent.h"

#include "common/base/buf.h"
#include "common/base/utf8.h"
#include "common/mcp/features/content.h"
#include "common/rpc/json.h"

#include <string.h>

#define KEY         "network"
#define METHOD      "elicitation/create"
#define SHOWN_BYTES 400 /* of the program */

/* Line by line: a program's newlines are to be seen, its other control characters not to act. */
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

static json_t *question_new(const struct buf *message)
{
    return json_pack("{s:s, s:{s:s, s:{s:{s:s, s:s, s:s, s:b}}}}", "message", buf_str(message),
                     "requestedSchema", "type", "object", "properties", "allow", "type", "boolean",
                     "title", "Allow network access", "description", "Only for what was asked",
                     "default", 1);
}

/* An answer counts only together with our own question: its state is bound to the call's arguments,
 * so that nobody's yes to one program serves another. */
static const json_t *answer_of(const struct mcp_elicitation *elicitation)
{
    const char *asked = json_string_value(elicitation->state);

    return asked && strcmp(asked, KEY) == 0 ? mcp_elicitation_response(elicitation, KEY) : NULL;
}

/* Accepting is the consent; a box that was left in the form, but not ticked, takes it back. */
static bool is_yes(const json_t *answer)
{
    const char *action = json_get_string(answer, "action");
    const json_t *allow = json_object_get(json_object_get(answer, "content"), "allow");

    return action && strcmp(action, "accept") == 0 && (!allow || json_is_true(allow));
}

static int consent(const struct mcp_tool_call *c, const struct buf *message, const char *refused,
                   struct mcp_need *need, struct err *e)
{
    const json_t *answer;

    if (!c->elicitation)
        return err_set(e, ERR_DENIED,
                       "argument 'network': this server gives network access only when the user "
                       "agrees, and there is nobody to ask");
    answer = answer_of(c->elicitation);
    if (!answer) {
        mcp_need_add(need, KEY, METHOD, question_new(message));
        need->state = json_string(KEY);
        return 0;
    }
    if (!is_yes(answer))
        return err_set(e, ERR_DENIED,
                       "argument 'network': the user did not agree to network access; %s", refused);
    return 1;
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
                "A sandbox that stays is to have access to the network. Everything that will run "
                "in it could then fetch data from anywhere and send its files anywhere. Allow it "
                "until the sandbox is closed?");
    return consent(c, &message, "the sandbox was not made", need, e);
}
