#include "config.h"

#include "common/protocol/client_links.h"

#include "common/base/auto.h"
#include "common/protocol/client_call.h"
#include "common/protocol/ops.h"
#include "common/rpc/json.h"

static json_t *ask(const struct broker_client *c, json_t *take_head, int pass_fd, int *out_fd,
                   struct err *e)
{
    json_auto_t *head = take_head;
    return client_ask(c, head, pass_fd, out_fd, e);
}

json_t *broker_create_upload(const struct broker_client *c, const char *tenant,
                             const char *conversation, const char *filename, uint64_t size,
                             struct err *e)
{
    return ask(c,
               json_pack("{s:s, s:s, s:s, s:s, s:I}", "op", op_name(OP_CREATE_UPLOAD), "tenant",
                         tenant, "conversationId", conversation, "name", filename, "size",
                         (json_int_t)size),
               -1, NULL, e);
}

static json_t *ticket_message(enum broker_op op, const char *ticket)
{
    return json_pack("{s:s, s:s}", "op", op_name(op), "ticket", ticket);
}

int broker_check_upload(const struct broker_client *c, const char *ticket, uint64_t size,
                        struct err *e)
{
    json_t *head = ticket_message(OP_CHECK_UPLOAD, ticket);
    if (size <= INT64_MAX)
        json_object_set_new(head, "size", json_integer((json_int_t)size));
    json_auto_t *result = ask(c, head, -1, NULL, e);
    return result ? 0 : -1;
}

int broker_stage_upload(const struct broker_client *c, const char *ticket, struct err *e)
{
    AUTO_FD int fd = -1;
    json_auto_t *result = ask(c, ticket_message(OP_STAGE_UPLOAD, ticket), -1, &fd, e);
    if (!result)
        return -1;
    if (fd < 0)
        return err_set(e, ERR_PROTOCOL, "the broker passed no file");
    return TAKE_FD(fd);
}

json_t *broker_finish_upload(const struct broker_client *c, const char *ticket,
                             const char *nginx_name, int fd, struct err *e)
{
    json_t *head = ticket_message(OP_FINISH_UPLOAD, ticket);
    if (nginx_name)
        json_object_set_new(head, "file", json_string(nginx_name));
    return ask(c, head, fd, NULL, e);
}

json_t *broker_import_url(const struct broker_client *c, const char *tenant,
                          const char *conversation, const char *url, const char *filename,
                          struct err *e)
{
    json_t *head = json_pack("{s:s, s:s, s:s, s:s}", "op", op_name(OP_IMPORT_URL), "tenant", tenant,
                             "conversationId", conversation, "url", url);
    if (filename)
        json_object_set_new(head, "name", json_string(filename));
    return ask(c, head, -1, NULL, e);
}
