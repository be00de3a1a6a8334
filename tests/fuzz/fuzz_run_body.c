/* The body of a call, which a worker sends: taken apart it is what it was, or it is refused. What
 * is passed on to a container is whole records, and only of the kinds that a run or a command has.
 */
#include "config.h"

#include "common/protocol/entry_record.h"
#include "common/protocol/run_body.h"
#include "tests/fuzz/fuzz.h"

#define SECOND_ID 0x01020304

static bool within(const struct run_body *body, const char *text)
{
    const char *message = body->message.data;

    return text > message && text + strlen(text) < message + body->message.len;
}

static void check_items(const struct run_body *body)
{
    for (size_t i = 0; i < body->n_args; i++)
        PROMISE(within(body, body->args[i]));
    for (size_t i = 0; i < body->n_env; i++)
        PROMISE(within(body, body->env[i]) && strchr(body->env[i], '=') > body->env[i]);
    PROMISE(!body->cwd || within(body, body->cwd));
}

static void check_streams(const struct run_body *body)
{
    AUTO_BUF struct buf code = BUF_INIT(WIRE_MESSAGE_MAX);
    AUTO_BUF struct buf input = BUF_INIT(WIRE_MESSAGE_MAX);
    AUTO_BUF struct buf copy = BUF_INIT(WIRE_MESSAGE_MAX);
    struct entry_record r;

    entry_records_join(body->message.data, body->streams_len, 'C', &code);
    entry_records_join(body->message.data, body->streams_len, 'I', &input);
    PROMISE(code.len == body->code_len && input.len == body->input_len);
    PROMISE(body->has_code || body->code_len == 0);
    entry_records_copy(body->message.data, body->streams_len, SECOND_ID, &copy);
    PROMISE(copy.len == body->streams_len);
    for (size_t at = 0; at < copy.len;) {
        ssize_t n = entry_record_take(copy.data + at, copy.len - at, &r);
        PROMISE(n > 0 && r.id == SECOND_ID && (r.tag == 'C' || r.tag == 'I'));
        at += (size_t)n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_RUN_BODY struct run_body body = RUN_BODY_INIT;
    struct err e = ERR_INIT;

    run_body_begins(data, len);
    buf_add(&body.message, data, len);
    if (run_body_take(&body, &e) < 0) {
        promise_error(&e);
        PROMISE(e.kind == ERR_INVALID);
        return 0;
    }
    check_items(&body);
    check_streams(&body);
    return 0;
}
