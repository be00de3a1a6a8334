#include "config.h"

#include "common/base/auto.h"
#include "common/jobs/job.h"
#include "common/records/run_record.h"
#include "common/rpc/json.h"
#include "common/sandbox/files/trash.h"
#include "common/sandbox/files/usage.h"

#include <fcntl.h>
#include <string.h>

/* The results that were kept of its runs. They are found by the list, which is of bounded length:
 * again until there are no more. */
static void remove_runs(const struct sandbox_root *root, const char *tenant,
                        const char *conversation, int64_t before, struct err *e)
{
    size_t i, removed;
    json_t *run;

    do {
        json_auto_t *runs = run_record_list(root, tenant, conversation, before, e);
        removed = 0;
        json_array_foreach(runs, i, run)
        {
            /* One of the same name that has begun since is another conversation's. */
            if (json_get_integer(run, "createdAt", before + 1) > before ||
                strcmp(json_get_string(run, "status"), "running") == 0)
                continue;
            run_record_remove(root, json_get_string(run, "runId"));
            removed++;
        }
    } while (removed == RUN_LIST_MAX);
}

/* What is there is counted before the answer; to remove it takes longer and is not done here. */
json_t *job_remove(struct job *job, struct err *e)
{
    const char *tenant = json_get_string(job->request, "tenant");
    const char *conversation = json_get_string(job->request, "conversationId");
    const char *trash = json_get_string(job->request, "trash");
    struct sandbox gone = {.root = job->world->root, .fd = -1};
    struct usage u = {0};

    if (!tenant || !conversation || !trash) {
        err_set(e, ERR_INVALID, "tenant, conversation or trash is missing");
        return NULL;
    }
    AUTO_FD int dir = openat(gone.root->fd, TRASH_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_FD int fd = openat(dir, trash, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    gone.fd = fd;
    if (fd >= 0 && usage_measure(&gone, NULL, &u, e) < 0)
        return NULL;
    remove_runs(gone.root, tenant, conversation, json_get_integer(job->request, "at", 0), e);
    return json_pack("{s:b, s:I, s:I}", "deleted", 1, "files", (json_int_t)u.files, "bytes",
                     (json_int_t)u.bytes);
}
