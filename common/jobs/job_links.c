#include "config.h"

#include "common/jobs/job.h"

#include "common/base/auto.h"
#include "common/base/clock.h"
#include "common/fetch/fetch.h"
#include "common/records/run_result.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/links/link.h"
#include "common/sandbox/links/upload.h"
#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/sizes.h"

#include <inttypes.h>
#include <string.h>

#define FETCH_MS     300000     /* less than the timeouts of web servers */
#define SIZE_UNKNOWN UINT64_MAX /* "size" is missing or -1 */

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
        sandbox_name(root, t.tenant, t.conversation, sandbox_dir, e) < 0 ||
        quota_check_disk(root->fd, &root->bounds, (uint64_t)size, e) < 0)
        return NULL;
    const struct ticket ticket = {
        .tenant = (char *)(uintptr_t)t.tenant,
        .conversation = (char *)(uintptr_t)t.conversation,
        .name = (char *)(uintptr_t)t.name,
        .size = (uint64_t)size,
        .expires = clock_unix_s() + (int64_t)job->world->config->limits.upload_ttl_ms / 1000,
    };
    if (ticket_make(root, &ticket, id, e) < 0)
        return NULL;
    AUTO_FREE char *url = link_url(&root->link_keys.now, root->base_url, LINK_UPLOAD, id,
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

/* The conversation's sandbox; if there is none, one with fd -1, which takes no room (quota.h). */
static int find_or_none(const struct job *job, const char *tenant, const char *conversation,
                        struct sandbox *out, struct err *e)
{
    struct err why = ERR_INIT;

    if (sandbox_find(job->world->root, tenant, conversation, out, &why) < 0) {
        *out = (struct sandbox){.root = job->world->root, .fd = -1};
        if (sandbox_name(out->root, tenant, conversation, out->name, e) < 0)
            return -1;
    }
    sizes_count_others(out, tenant);
    return 0;
}

/* Of a body whose size is not known the room grows as it comes. */
static int take_room(const struct job *job, const struct ticket *t, uint64_t size, struct err *e)
{
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;

    if (find_or_none(job, t->tenant, t->conversation, &sb, e) < 0)
        return -1;
    return job_take_room(job, &sb, t->tenant, size == SIZE_UNKNOWN ? t->size : size, 0, e);
}

/* "hold": the caller gets the room's socket; else the room is free again with the answer. "begun":
 * after a restart of the broker. */
json_t *job_check_upload(struct job *job, struct err *e)
{
    AUTO_TICKET struct ticket t = {0};
    uint64_t size = (uint64_t)json_get_integer(job->request, "size", -1);
    bool begun = json_get_bool(job->request, "begun", 0) != 0;
    const char *id;

    if (read_ticket(job, &id, &t, e) < 0 || (!begun && begins_in_time(&t, e) < 0) ||
        (size != SIZE_UNKNOWN && fits_ticket(job, &t, size, e) < 0) ||
        take_room(job, &t, size, e) < 0)
        return NULL;
    if (json_get_bool(job->request, "hold", 0))
        job->out_fd = TAKE_FD(job->room_fd);
    return json_pack("{s:s}", "tenant", t.tenant);
}

json_t *job_stage_upload(struct job *job, struct err *e)
{
    AUTO_TICKET struct ticket t = {0};
    const char *id;

    if (read_ticket(job, &id, &t, e) < 0 || begins_in_time(&t, e) < 0 ||
        quota_check_disk(job->world->root->fd, &job->world->root->bounds, 0, e) < 0)
        return NULL;
    job->out_fd = upload_stage(job->world->root, e);
    return job->out_fd < 0 ? NULL : json_object();
}

static json_t *put_body(const struct sandbox *sb, const struct job_target *t,
                        struct upload_body *body, struct err *e)
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

/* The ticket is used last: it survives an earlier failure. */
json_t *job_finish_upload(struct job *job, struct err *e)
{
    AUTO_TICKET struct ticket t = {0};
    AUTO_UPLOAD_BODY struct upload_body body = UPLOAD_BODY_INIT;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    const char *id, *file = json_get_string(job->request, "file");

    if (read_ticket(job, &id, &t, e) < 0 ||
        (file ? upload_of_nginx(job->world->root, file, &body, e)
              : upload_of_stage(job->world->root, job->in_fd, &body, e)) < 0 ||
        fits_ticket(job, &t, body.size, e) < 0 ||
        sandbox_open(job->world->root, t.tenant, t.conversation, &sb, e) < 0 ||
        quota_check_arrived(&sb, body.size, e) < 0 || ticket_use(job->world->root, id, e) < 0)
        return NULL;
    const struct job_target target = {t.tenant, t.conversation, t.name};
    return put_body(&sb, &target, &body, e);
}

/* ---- files from other servers ---- */

/* Without a name in the request the file is named after the URL. */
static int import_read_target(const struct job *job, const char *url, char name[FETCH_NAME_MAX + 1],
                              struct job_target *out, struct err *e)
{
    if (json_object_get(job->request, "name"))
        return job_read_target(job, "name", "filename", out, e);
    out->name = name;
    if (job_read_owner(job, &out->tenant, &out->conversation, e) < 0)
        return -1;
    if (fetch_name_of_url(url, name) < 0)
        return err_set(e, ERR_INVALID, "filename is needed: the path of url names no file");
    return files_check_name("filename (of url)", name, strlen(name), e);
}

/* The bytes that there is room for. What else is on its way shows as they come. */
static int find_room(const struct job *job, const struct job_target *t, uint64_t *out,
                     struct err *e)
{
    uint64_t max = job->world->config->limits.upload_max;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct usage left;

    if (find_or_none(job, t->tenant, t->conversation, &sb, e) < 0 ||
        quota_left(&sb, &left, e) < 0 || job_take_room(job, &sb, t->tenant, 0, 0, e) < 0)
        return -1;
    *out = left.bytes < max ? left.bytes : max;
    return 0;
}

/* A file that grows while it is fetched. */
struct growing {
    const struct job *job;
    int fd;
    bool refused; /* there is no room for it any more */
};

static int keep_room(void *ctx, struct err *e)
{
    struct growing *g = ctx;
    struct stat st;

    if (fstat(g->fd, &st) < 0)
        return err_errno(e, "the file cannot be examined");
    g->refused = job_keep_room(g->job, (uint64_t)st.st_size, (uint64_t)st.st_size, e) < 0;
    return g->refused ? -1 : 0;
}

static int import_fetch(const struct job *job, const char *url, const struct job_target *t, int fd,
                        struct err *e)
{
    struct growing growing = {.job = job, .fd = fd};
    struct fetch_limits limits = {.timeout_ms = FETCH_MS, .go_on = keep_room, .ctx = &growing};

    if (find_room(job, t, &limits.max_bytes, e) < 0)
        return -1;
    if (fetch_in_process(url, fd, job->caller_fd, &limits, e) == 0)
        return keep_room(&growing, e);
    if (e->kind == ERR_LIMIT && !growing.refused &&
        limits.max_bytes < job->world->config->limits.upload_max)
        err_wrap(e, "%" PRIu64 " bytes are left (SANDBOX_QUOTA, SANDBOX_DISK_RESERVE)",
                 limits.max_bytes);
    return -1;
}

static json_t *import_to(const struct job *job, const char *url, const struct job_target *t,
                         struct err *e)
{
    const struct sandbox_root *root = job->world->root;
    AUTO_UPLOAD_BODY struct upload_body body = UPLOAD_BODY_INIT;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    AUTO_FD int fd = upload_stage(root, e);

    if (fd < 0 || import_fetch(job, url, t, fd, e) < 0 || upload_of_stage(root, fd, &body, e) < 0 ||
        sandbox_open(root, t->tenant, t->conversation, &sb, e) < 0 ||
        quota_check_arrived(&sb, body.size, e) < 0)
        return NULL;
    json_t *result = put_body(&sb, t, &body, e);
    if (result)
        job_land(job, body.size);
    return result;
}

json_t *job_import_url(struct job *job, struct err *e)
{
    const char *url = json_get_string(job->request, "url");
    char name[FETCH_NAME_MAX + 1], sandbox_dir[SANDBOX_NAME_LEN + 1];
    struct job_target t;

    if (!job->world->config->limits.import)
        return job_fail(e, ERR_DENIED, "this server fetches no URLs (SANDBOX_IMPORT)");
    if (!url)
        return job_fail(e, ERR_INVALID, "url is missing");
    if (fetch_check_url(url, e) < 0 || import_read_target(job, url, name, &t, e) < 0 ||
        sandbox_name(job->world->root, t.tenant, t.conversation, sandbox_dir, e) < 0)
        return NULL;
    return import_to(job, url, &t, e);
}
