#include "config.h"

#include "common/protocol/client_remove.h"

#include "common/protocol/client_call.h"
#include "common/protocol/ops.h"

json_t *broker_delete_conversation(const struct broker_client *c, const char *tenant,
                                   const char *conversation, struct err *e)
{
    json_auto_t *head = json_pack("{s:s, s:s, s:s}", "op", op_name(OP_DELETE_CONVERSATION),
                                  "tenant", tenant, "conversationId", conversation);
    const struct client_call call = {.client = c, .head = head, .pass_fd = -1};

    return client_call(&call, e);
}
