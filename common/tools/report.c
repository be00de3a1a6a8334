#include "config.h"

#include "common/tools/report.h"

#include "common/base/log.h"
#include "common/mcp/features/content.h"

#include <errno.h>

static const char *io_text(int sys)
{
    switch (sys) {
    case ENOSPC:
    case EDQUOT:
        return "there is no room left on the server's disk";
    case EACCES:
    case EROFS:
        return "the server cannot write to the sandbox's directory";
    default:
        return "the server could not read or write the sandbox's files";
    }
}

static const char *public_text(const struct err *e)
{
    switch (e->kind) {
    case ERR_INVALID:
    case ERR_LIMIT:
    case ERR_NOT_FOUND:
    case ERR_EXISTS:
    case ERR_DENIED:
    case ERR_BUSY:
    case ERR_LOST:
        return e->text;
    case ERR_UNAVAILABLE:
        return "the server's container engine does not answer at the moment; nothing is wrong with "
               "the call: try again in a while";
    case ERR_REFUSED:
        return "the server's container engine refused to run this; the server's log says why";
    case ERR_TIMEOUT:
        return "the server took too long; try again in a while";
    case ERR_CANCELLED:
        return "the call was cancelled";
    case ERR_IO:
        return io_text(e->sys);
    case ERR_PROTOCOL:
    case ERR_INTERNAL:
    case ERR_NONE:
        break;
    }
    return "the server failed to do this; its log may say more";
}

void report_failure(struct mcp_result *out, const struct err *e)
{
    log_debug("a tool call failed: %s: %s", err_kind_name(e->kind), e->text);
    mcp_result_fail(out, "%s", public_text(e));
    out->failure = e->kind;
}

void report_soften(struct err *e)
{
    log_debug("a request failed: %s: %s", err_kind_name(e->kind), e->text);
    err_set(e, e->kind, "%s", public_text(e));
}

void report_notices(const json_t *result, struct mcp_result *out)
{
    size_t i;
    const json_t *notice;

    json_array_foreach(json_object_get(result, "notices"), i, notice)
    {
        mcp_result_add(out,
                       content_text_new(json_string_value(notice), json_string_length(notice)));
    }
}
