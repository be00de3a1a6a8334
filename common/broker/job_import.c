#include "config.h"

#include "common/broker/job.h"

#include "common/base/auto.h"
#include "common/fetch/fetch.h"
#include "common/rpc/json.h"
#include "common/sandbox/files.h"
#include "common/sandbox/quota.h"
#include "common/sandbox/ticket.h"
#include "common/sandbox/upload.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#define FETCH_MS    300000 /* below what web servers wait for an answer */
#define IMPORTS_MAX 8      /* at the same time: each is a job, and they last */

/* A place among the imports, held by its lock while the descriptor is open. */
static int take_place(const struct sandbox_root *root, struct err *e)
{
    char path[sizeof TICKET_DIR "/import-" + 12];

    for (int i = 0; i < IMPORTS_MAX; i++) {
        snprintf(path, sizeof path, TICKET_DIR "/import-%d", i);
        AUTO_FD int fd = openat(root->fd, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return err_errno(e, "the imports cannot be counted");
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return TAKE_FD(fd);
    }
    return err_set(e, ERR_BUSY, "%d files are being fetched already; try again in a while",
                   IMPORTS_MAX);
}

/* Whose file it will be; without a name of the caller's it is called as in the URL. */
static int read_target(const struct job *job, const char *url, char name[FETCH_NAME_MAX + 1],
                       struct job_target *out, struct err *e)
{
    if (json_object_get(job->request, "name"))
        return job_read_target(job, "name", "filename", out, e);
    *out = (struct job_target){json_get_string(job->request, "tenant"),
                               json_get_string(job->request, "conversation"), name};
    if (!out->tenant || !out->conversation)
        return err_set(e, ERR_INVALID, "tenant or conversation is missing");
    if (fetch_name_of_url(url, name) < 0)
        return err_set(e, ERR_INVALID, "filename is needed: the path of url names no file");
    return files_check_name("filename (of url)", name, strlen(name), e);
}

static json_t *import(const struct job *job, const char *url, const struct job_target *t,
                      struct err *e)
{
    const struct sandbox_root *root = job->world->root;
    const struct fetch_limits limits = {.max_bytes = job->world->config->limits.upload_max,
                                        .timeout_ms = FETCH_MS};
    AUTO_UPLOAD_BODY struct upload_body body = UPLOAD_BODY_INIT;
    AUTO_SANDBOX struct sandbox sb = SANDBOX_INIT;
    AUTO_FD int place = take_place(root, e);
    AUTO_FD int fd = place < 0 ? -1 : upload_stage(root, e);

    if (fd < 0 || fetch_in_process(url, fd, job->asker_fd, &limits, e) < 0 ||
        upload_of_stage(root, fd, &body, e) < 0 ||
        sandbox_open(root, t->tenant, t->conversation, &sb, e) < 0 ||
        quota_check(&sb, body.size, e) < 0)
        return NULL;
    return job_put_body(&sb, t, &body, e);
}

json_t *job_import_url(struct job *job, struct err *e)
{
    const char *url = json_get_string(job->request, "url");
    char name[FETCH_NAME_MAX + 1], box[SANDBOX_NAME_LEN + 1];
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
        sandbox_name(job->world->root, t.tenant, t.conversation, box, e) < 0)
        return NULL;
    return import(job, url, &t, e);
}
