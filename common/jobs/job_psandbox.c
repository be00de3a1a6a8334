/* Lasting sandboxes that no process answers for, and what all of them are. */
#include "config.h"

#include "common/jobs/job.h"

#include "common/base/auto.h"
#include "common/base/utf8.h"
#include "common/records/psandbox_record.h"
#include "common/rpc/json.h"

#include <string.h>

/* The row of the sandbox that the request names; NULL: not found. */
static json_t *row_of(const struct job *job, struct err *e)
{
    const char *tenant = json_get_string(job->request, "tenant");
    const char *psandbox_id = json_get_string(job->request, "sandboxId");

    if (tenant && psandbox_id)
        return psandbox_record_row(job->world->root, psandbox_id, tenant, e);
    psandbox_not_found(e);
    return NULL;
}

/* exec: it has ended, or is ending just now. */
json_t *job_psandbox_ended(struct job *job, struct err *e)
{
    json_auto_t *row = row_of(job, e);

    if (row)
        psandbox_record_say_end(row, e);
    return NULL;
}

json_t *job_close_psandbox(struct job *job, struct err *e)
{
    return row_of(job, e);
}

json_t *job_psandbox_logs(struct job *job, struct err *e)
{
    AUTO_BUF struct buf raw = BUF_INIT(OUTPUT_RING_KEEP);
    AUTO_BUF struct buf text = BUF_INIT(3 * OUTPUT_RING_KEEP);
    json_auto_t *row = row_of(job, e);

    if (!row)
        return NULL;
    psandbox_record_read_log(job->world->root, json_get_string(row, "sandboxId"), &raw);
    size_t lost = utf8_lost_start(buf_str(&raw), raw.len);
    utf8_repair(buf_str(&raw) + lost, raw.len - lost, &text);
    return json_pack("{s:o}", "text", json_stringn(buf_str(&text), text.len));
}

json_t *job_psandbox_status(struct job *job, struct err *e)
{
    const char *tenant = json_get_string(job->request, "tenant");
    json_t *rows;

    if (json_object_get(job->request, "sandboxId")) {
        json_t *row = row_of(job, e);
        rows = row ? json_pack("[o]", row) : NULL;
    } else if (tenant) {
        rows = psandbox_record_list(job->world->root, tenant,
                                    json_get_string(job->request, "conversationId"), e);
    } else {
        err_set(e, ERR_INVALID, "box_status: tenant is missing");
        return NULL;
    }
    return rows ? json_pack("{s:o}", "sandboxes", rows) : NULL;
}
