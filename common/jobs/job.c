#include "config.h"

#include "common/jobs/job.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/files.h"
#include "common/sandbox/state/state.h"
#include "common/sandbox/state/unsaved.h"

#include <poll.h>

int job_read_owner(const struct job *job, const char **tenant, const char **conversation,
                   struct err *e)
{
    *tenant = json_get_string(job->request, "tenant");
    *conversation = json_get_string(job->request, "conversationId");
    if (*tenant && *conversation)
        return 0;
    return err_set(e, ERR_INVALID, "tenant or conversationId is missing");
}

int job_read_target(const struct job *job, const char *key, const char *field,
                    struct job_target *out, struct err *e)
{
    const json_t *name = json_object_get(job->request, key);

    out->name = json_string_value(name);
    if (job_read_owner(job, &out->tenant, &out->conversation, e) < 0)
        return -1;
    if (!out->name)
        return err_set(e, ERR_INVALID, "%s is missing", key);
    return files_check_name(field, out->name, json_string_length(name), e);
}

int job_open_target(const struct job *job, struct job_target *out, struct sandbox *sb,
                    struct err *e)
{
    if (job_read_target(job, "name", "filename", out, e) < 0)
        return -1;
    return sandbox_find(job->world->root, out->tenant, out->conversation, sb, e);
}

void job_note_reading(const struct sandbox *sb, const char *tenant, const char *conversation)
{
    struct err e = ERR_INIT;

    if (state_note_use(sb, tenant, conversation, &e) < 0)
        log_warn("a sandbox's record was not written: %s", e.text);
}

void job_note_use(const struct sandbox *sb, const char *tenant, const char *conversation)
{
    job_note_reading(sb, tenant, conversation);
    state_forget_size(sb->root, sb->name);
    unsaved_note(sb->root, sb->name);
}

int job_check_caller(void *job, struct err *e)
{
    const struct job *j = job;
    struct pollfd p = {.fd = j->caller_fd, .events = POLLRDHUP};

    if (poll(&p, 1, 0) <= 0 || !p.revents)
        return 0;
    return err_set(e, ERR_CANCELLED, "the caller closed the connection");
}
