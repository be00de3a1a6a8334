#include "config.h"

#include "tests/fakes/fake_client.h"

#include "common/base/mem.h"
#include "common/rpc/json.h"

#include <stdlib.h>
#include <string.h>

struct asked ask(const struct mcp_server *server, const struct mcp_origin *origin, const char *text)
{
    struct err e = ERR_INIT;
    json_auto_t *message = json_parse(text, strlen(text), JSON_MAX_DEPTH, &e);
    struct asked a = {.text = NULL};

    if (message)
        mcp_handle(server, origin, message, &a.answer);
    else
        mcp_parse_failed(server, &e, &a.answer);
    a.text = a.answer.body ? json_dumps(a.answer.body, JSON_COMPACT) : mem_strdup("");
    return a;
}

void asked_clear(struct asked *a)
{
    json_decref(a->answer.body);
    free(a->text);
    *a = (struct asked){.text = NULL};
}
