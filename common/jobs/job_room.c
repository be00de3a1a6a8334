/* Room for what a job brings into a sandbox, while it is on its way. */
#include "config.h"

#include "common/jobs/job.h"

#include "common/protocol/room.h"
#include "common/sandbox/state/quota.h"

/* The main process has ended: the job, which outlives it, has no others beside it. */
static int settle(int rc, struct err *e)
{
    if (rc == 0 || e->kind != ERR_CANCELLED)
        return rc;
    *e = ERR_INIT;
    return 0;
}

int job_take_room(const struct job *job, const struct sandbox *sb, const char *tenant,
                  uint64_t bytes, uint64_t there, struct err *e)
{
    struct usage now;

    if (quota_count(sb, &now, e) < 0)
        return -1;
    json_t *message = json_pack(
        "{s:s, s:s, s:I, s:I, s:b, s:I, s:I, s:I, s:I}", "tenant", tenant, "sandboxDir", sb->name,
        "usedBytes", (json_int_t)now.bytes, "usedFiles", (json_int_t)now.files, "usedPartial",
        now.partial, "tenantBytes", (json_int_t)sb->tenant_bytes, "othersBytes",
        (json_int_t)sb->others_bytes, "bytes", (json_int_t)bytes, "there", (json_int_t)there);
    return settle(room_ask(job->room_fd, message, e), e);
}

int job_keep_room(const struct job *job, uint64_t bytes, uint64_t there, struct err *e)
{
    return settle(room_keep(job->room_fd, bytes, there, e), e);
}

void job_land(const struct job *job, uint64_t bytes)
{
    room_land(job->room_fd, bytes);
}
