#include "config.h"

#include "common/protocol/client_files.h"

#include "common/protocol/client_call.h"
#include "common/protocol/ops.h"

/* A question without a descriptor, in one message; takes it. */
static json_t *ask(const struct broker_client *c, json_t *take_head, struct err *e)
{
    json_auto_t *head = take_head;

    return client_ask(c, head, -1, NULL, e);
}

json_t *broker_list_folder(const struct broker_client *c, const char *tenant,
                           const struct broker_listing *l, struct err *e)
{
    return ask(c,
               json_pack("{s:s, s:s, s:s, s:s, s:s*, s:b, s:s*, s:I}", "op",
                         op_name(OP_LIST_FOLDER), "tenant", tenant, "conversationId",
                         l->conversation, "folder", l->folder, "glob", l->glob, "recursive",
                         l->recursive, "after", l->after, "max", (json_int_t)l->max),
               e);
}

json_t *broker_delete_file(const struct broker_client *c, const char *tenant,
                           const char *conversation, const char *name, bool recursive,
                           struct err *e)
{
    return ask(c,
               json_pack("{s:s, s:s, s:s, s:s, s:b}", "op", op_name(OP_DELETE), "tenant", tenant,
                         "conversationId", conversation, "name", name, "recursive", recursive),
               e);
}

json_t *broker_move_file(const struct broker_client *c, const char *tenant,
                         const char *conversation, const char *from, const char *to, bool replace,
                         struct err *e)
{
    return ask(c,
               json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "op", op_name(OP_MOVE), "tenant", tenant,
                         "conversationId", conversation, "from", from, "to", to, "replace",
                         replace),
               e);
}
