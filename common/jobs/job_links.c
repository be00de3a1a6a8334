#include "config.h"

#include "common/jobs/job.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/records/retention_notice.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/links/link.h"
#include "common/sandbox/links/ticket.h"
#include "common/sandbox/links/upload.h"
#include "common/sandbox/state/quota.h"

#include <inttypes.h>
#include <string.h>

#define SIZE_UNKNOWN UINT64_MAX /* what -1, a size that nobody told, becomes */

static uint64_t upload_max(const struct job *job)
{
    return job->world->config->limits.upload_max;
}

static int check_size(const struct job *job, json_int_t size, struct err *e)
{
    if (size < 0)
        return err_set(e, ERR_INVALID, "size must be a number of bytes");
    if ((uint64_t)size > upload_max(job))
        return err_set(e, ERR_LIMIT, "size: the limit is %" PRIu64 " bytes (SANDBOX_UPLOAD_MAX)",
                       upload_max(job));
    return 0;
}

json_t *job_create_upload(struct job *job, struct err *e)
{
    const struct sandbox_root *root = job->world->root;
    json_int_t size = json_get_integer(job->request, "size", 0);
    char id[TICKET_ID_LEN + 1], sandbox_dir[SANDBOX_NAME_LEN + 1];
    struct job_target t;

    if (check_size(job, size, e) < 0 || job_read_target(job, "name", "filename", &t, e) < 0 ||
        sandbox_name(root, t.tenant, t.conversation, sandbox_dir, e) < 0)
        return NULL;
    const struct ticket ticket = {
        .tenant = (char *)(uintptr_t)t.tenant,
        .conversation = (char *)(uintptr_t)t.conversation,
        .name = (char *)(uintptr_t)t.name,
        .size = (uint64_t)size,
        .expires = clock_unix_s() + job->world->config->limits.upload_ttl_s,
    };
    if (ticket_make(root, &ticket, id, e) < 0)
        return NULL;
    AUTO_FREE char *url = link_url(&root->link_key, root->base_url, LINK_UPLOAD, id,
                                   ticket.expires);
    return json_pack("{s:s, s:s, s:I, s:I}", "url", url, "method", "PUT", "maxBytes",
                     size ? size : (json_int_t)upload_max(job), "expiresAt",
                     (json_int_t)ticket.expires);
}

static int read_ticket(const struct job *job, const char **out_id, struct ticket *out,
                       struct err *e)
{
    *out_id = json_get_string(job->request, "ticket");
    if (!*out_id)
        return err_set(e, ERR_INVALID, "ticket is missing");
    return ticket_read(job->world->root, *out_id, out, e);
}

static int fits_ticket(const struct job *job, const struct ticket *t, uint64_t size, struct err *e)
{
    if (size > upload_max(job))
        return err_set(e, ERR_LIMIT, "the file is over %" PRIu64 " bytes (SANDBOX_UPLOAD_MAX)",
                       upload_max(job));
    if (t->size && size != t->size)
        return err_set(e, t->size < size ? ERR_LIMIT : ERR_INVALID,
                       "the file has %" PRIu64 " bytes, but %" PRIu64 " were announced", size,
                       t->size);
    return 0;
}

static int begins_in_time(const struct ticket *t, struct err *e)
{
    if (clock_unix_s() < t->expires)
        return 0;
    return err_set(e, ERR_TIMEOUT, "this upload link has expired; ask for a new one");
}

void job_find_or_none(const struct job *job, const char *tenant, const char *conversation,
                      struct sandbox *out)
{
    struct err why = ERR_INIT;

    if (sandbox_find(job->world->root, tenant, conversation, out, &why) < 0)
        *out = (struct sandbox){.root = job->world->root, .fd = -1};
}

/*
 * Said before the body is sent, since it would be said after it. A body of unknown size may fill
 * the disk by as much as the web server lets pass; whether the conversation may have it is seen
 * when it is there.
 */
static int has_room(const struct job *job, const struct ticket *t, uint64_t size, struct err *e)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    bool known = size != SIZE_UNKNOWN;

    job_find_or_none(job, t->tenant, t->conversation, &sb);
    if (!known && quota_check_disk(sb.root, upload_max(job), e) < 0)
        return -1;
    return quota_check(&sb, known ? size : t->size, e);
}

json_t *job_check_upload(struct job *job, struct err *e)
{
    AUTO_TICKET struct ticket t = TICKET_INIT;
    uint64_t size = (uint64_t)json_get_integer(job->request, "size", -1);
    const char *id;

    if (read_ticket(job, &id, &t, e) < 0 || begins_in_time(&t, e) < 0 ||
        (size != SIZE_UNKNOWN && fits_ticket(job, &t, size, e) < 0) ||
        has_room(job, &t, size, e) < 0)
        return NULL;
    return json_object();
}

json_t *job_stage_upload(struct job *job, struct err *e)
{
    AUTO_TICKET struct ticket t = TICKET_INIT;
    const char *id;

    if (read_ticket(job, &id, &t, e) < 0 || begins_in_time(&t, e) < 0)
        return NULL;
    job->out_fd = upload_stage(job->world->root, e);
    return job->out_fd < 0 ? NULL : json_object();
}

static int open_body(const struct job *job, struct upload_body *out, struct err *e)
{
    const char *file = json_get_string(job->request, "file");

    return file ? upload_of_nginx(job->world->root, file, out, e)
                : upload_of_stage(job->world->root, job->in_fd, out, e);
}

json_t *job_put_body(const struct sandbox *sb, const struct job_target *t, struct upload_body *body,
                     struct err *e)
{
    if (upload_move(sb, t->name, body, e) < 0)
        return NULL;
    job_note_use(sb, t->tenant, t->conversation);
    AUTO_FREE char *url = sandbox_file_url(sb, t->name);
    json_t *result = json_pack("{s:s, s:s, s:s, s:I, s:s}", "tenant", t->tenant, "conversationId",
                               t->conversation, "name", t->name, "size", (json_int_t)body->size,
                               "url", url);
    retention_notice_owner(sb, result);
    return result;
}

/* The ticket is used last: whatever is wrong before leaves it good for another try. */
json_t *job_finish_upload(struct job *job, struct err *e)
{
    AUTO_TICKET struct ticket t = TICKET_INIT;
    AUTO_UPLOAD_BODY struct upload_body body = UPLOAD_BODY_INIT;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    const char *id;

    if (read_ticket(job, &id, &t, e) < 0 || open_body(job, &body, e) < 0 ||
        fits_ticket(job, &t, body.size, e) < 0 ||
        sandbox_open(job->world->root, t.tenant, t.conversation, &sb, e) < 0 ||
        quota_check_arrived(&sb, body.size, e) < 0 || ticket_use(job->world->root, id, e) < 0)
        return NULL;
    const struct job_target target = {t.tenant, t.conversation, t.name};
    return job_put_body(&sb, &target, &body, e);
}
