#include "config.h"

#include "fcgi/call_log.h"

#include "common/base/auto.h"
#include "common/base/log.h"

/* Where nothing more is known. */
static const struct {
    int status;
    const char *reason;
} reasons[] = {{400, "request"},   {401, "token"},        {403, "forbidden"}, {404, "not_found"},
               {405, "method"},    {406, "accept"},       {409, "busy"},      {410, "gone"},
               {413, "too_large"}, {415, "content_type"}, {429, "too_many"}};

const char *call_log_outcome(int status, const char *error)
{
    const char *outcome = status >= 500   ? "failed"
                          : status == 421 ? "sent_on"
                          : status >= 400 ? "refused"
                                          : "ok";

    if (error && status < 500)
        outcome = err_is_refusal(err_kind_parse(error)) ? "refused" : "failed";
    if (!error && status < 400)
        log_forget_reason();
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            log_reason(reasons[i].reason, NULL);
    if (error)
        log_reason(error, NULL);
    return outcome;
}

void call_log_refusal(const struct mcp_answer *a)
{
    const struct log_field fields[] = {
        {.name = "outcome", .text = call_log_outcome(a->status, a->error)},
        {.name = "error", .text = a->error ? a->error : ""}};
    const char *detail = a->detail ? a->detail : "";

    if (*detail && !*log_noted(LOG_TOOL))
        log_note(LOG_TOOL, detail);
    log_with(LOG_LEVEL_INFO, fields, ARRAY_LEN(fields), "%s%s%s", a->method ? a->method : "-",
             *detail ? " " : "", detail);
    log_forget_reason();
}
