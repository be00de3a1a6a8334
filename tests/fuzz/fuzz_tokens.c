/* The file of tokens, and the token that a client sends: whatever stands in a line, what is taken
 * has a tenant and scopes, and says the same when it is written again. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "fcgi/tokens/token_rows.h"
#include "tests/fuzz/fuzz.h"

static void check_row(const char *line)
{
    AUTO_BUF struct buf text = BUF_INIT(1000);
    struct token token, again;
    struct err e = ERR_INIT;
    int rc = token_row_parse(line, &token, &e);

    if (rc < 0)
        promise_error(&e);
    if (rc <= 0)
        return;
    PROMISE(token_tenant_is_valid(token.tenant));
    PROMISE(token.scopes && !(token.scopes & ~(unsigned)SCOPE_ALL) && *token.id);
    if (token.own)
        return;
    token_row_write(&token, &text);
    PROMISE(buf_ok(&text) && text.data[text.len - 1] == '\n');
    text.data[text.len - 1] = '\0';
    PROMISE(token_row_parse(text.data, &again, &e) == 1);
    again.made_s = token.made_s; /* of a far year */
    PROMISE(memcmp(&token, &again, sizeof token) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *text = mem_strndup((const char *)data, len < 65536 ? len : 65536);
    struct token sent;

    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        if (token_read(line, &sent))
            PROMISE(*sent.id && !*sent.tenant && !sent.scopes);
        check_row(line);
    }
    return 0;
}
