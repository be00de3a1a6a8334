#include "config.h"

#include "common/jobs/job.h"

#include "common/base/auto.h"
#include "common/fetch/fetch.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/links/upload.h"
#include "common/sandbox/state/quota.h"

#include <inttypes.h>
#include <string.h>

#define FETCH_MS 300000 /* below what web servers wait for an answer */

/* Whose file it will be; without a name of the caller's it is called as in the URL. */
static int read_target(const struct job *job, const char *url, char name[FETCH_NAME_MAX + 1],
                       struct job_target *out, struct err *e)
{
    if (json_object_get(job->request, "name"))
        return job_read_target(job, "name", "filename", out, e);
    *out = (struct job_target){json_get_string(job->request, "tenant"),
                               json_get_string(job->request, "conversationId"), name};
    if (!out->tenant || !out->conversation)
        return err_set(e, ERR_INVALID, "tenant or conversation is missing");
    if (fetch_name_of_url(url, name) < 0)
        return err_set(e, ERR_INVALID, "filename is needed: the path of url names no file");
    return files_check_name("filename (of url)", name, strlen(name), e);
}

/* What may be fetched of it: as much as there is room for now. */
static int find_room(const struct job *job, const struct job_target *t, uint64_t *out,
                     struct err *e)
{
    uint64_t max = job->world->config->limits.upload_max;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    struct usage left;

    job_find_or_none(job, t->tenant, t->conversation, &sb);
    if (quota_left(&sb, &left, e) < 0)
        return -1;
    *out = left.bytes < max ? left.bytes : max;
    return 0;
}

/* Others write meanwhile, too. */
static int is_room_left(void *ctx, struct err *e)
{
    const struct sandbox_root *root = ctx;

    return quota_check_disk(root, 0, e);
}

static int fetch(const struct job *job, const char *url, const struct job_target *t, int fd,
                 struct err *e)
{
    struct fetch_limits limits = {
        .timeout_ms = FETCH_MS, .go_on = is_room_left, .ctx = (void *)(uintptr_t)job->world->root};

    if (find_room(job, t, &limits.max_bytes, e) < 0)
        return -1;
    if (fetch_in_process(url, fd, job->caller_fd, &limits, e) == 0)
        return 0;
    if (e->kind == ERR_LIMIT && limits.max_bytes < job->world->config->limits.upload_max)
        err_wrap(e, "%" PRIu64 " bytes are left (SANDBOX_QUOTA, SANDBOX_DISK_RESERVE)",
                 limits.max_bytes);
    return -1;
}

static json_t *import(const struct job *job, const char *url, const struct job_target *t,
                      struct err *e)
{
    const struct sandbox_root *root = job->world->root;
    AUTO_UPLOAD_BODY struct upload_body body = UPLOAD_BODY_INIT;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    AUTO_FD int fd = upload_stage(root, e);

    if (fd < 0 || fetch(job, url, t, fd, e) < 0 || upload_of_stage(root, fd, &body, e) < 0 ||
        sandbox_open(root, t->tenant, t->conversation, &sb, e) < 0 ||
        quota_check_arrived(&sb, body.size, e) < 0)
        return NULL;
    return job_put_body(&sb, t, &body, e);
}

json_t *job_import_url(struct job *job, struct err *e)
{
    const char *url = json_get_string(job->request, "url");
    char name[FETCH_NAME_MAX + 1], sandbox_dir[SANDBOX_NAME_LEN + 1];
    struct job_target t;

    if (!job->world->config->limits.import) {
        err_set(e, ERR_DENIED, "this server fetches no URLs (SANDBOX_IMPORT)");
        return NULL;
    }
    if (!url) {
        err_set(e, ERR_INVALID, "url is missing");
        return NULL;
    }
    if (fetch_check_url(url, e) < 0 || read_target(job, url, name, &t, e) < 0 ||
        sandbox_name(job->world->root, t.tenant, t.conversation, sandbox_dir, e) < 0)
        return NULL;
    return import(job, url, &t, e);
}
