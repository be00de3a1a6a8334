/* Short operations of the broker, each in a child process of its own, which may block. */
#ifndef SANDCGI_JOBS_JOB_H
#define SANDCGI_JOBS_JOB_H

#include "common/sandbox/sandbox.h"
#include "common/scheduler/broker_config.h"
#include "common/scheduler/children.h"
#include "common/scheduler/pool.h"
#include "common/scheduler/run_queue.h"

#include <jansson.h>

/* What a job inherits from the main process at its fork: the books as they were then. */
struct job_world {
    const struct broker_config *config;
    const struct sandbox_root *root;
    const struct runners *runners;
    struct children *children;
    const struct run_queue *queue;
    struct pool *pool;
};

/* One operation. */
struct job {
    const struct job_world *world;
    const json_t *request; /* its head */
    int caller_fd;         /* the connection */
    int in_fd;             /* -1: none; the caller closes it */
    int out_fd;            /* set by the operation: rides along with the answer */
};

/* Whose file the request is about. Borrowed from the request. */
struct job_target {
    const char *tenant, *conversation, *name;
};

/* Reads tenant and conversationId. */
int job_read_owner(const struct job *job, const char **tenant, const char **conversation,
                   struct err *e);
/* The same and the name under key, which is checked (files_check_name); field names it in error
 * texts. */
int job_read_target(const struct job *job, const char *key, const char *field,
                    struct job_target *out, struct err *e);
/* The conversation's sandbox; if there is none, one with fd -1, which takes no room (quota.h). */
void job_find_or_none(const struct job *job, const char *tenant, const char *conversation,
                      struct sandbox *out);
/* Notes in the sandbox's record that its files were changed, or (the second) read; a failure is
 * only logged. */
void job_note_use(const struct sandbox *sb, const char *tenant, const char *conversation);
void job_note_reading(const struct sandbox *sb, const char *tenant, const char *conversation);
/* ERR_CANCELLED when the caller has closed the connection: jobs that may last ask between steps,
 * where they may end safely. A sandbox_watch's function, of the job. */
int job_check_caller(void *job, struct err *e);

/* Each carries out the operation of its name (protocol/client_*.h say what the answer is): new
 * reference, or NULL. */

/* job_files.c; the main process has moved the sandbox of delete_conversation to .trash before, and
 * empties it afterwards. */
json_t *job_put(struct job *job, struct err *e);
json_t *job_open(struct job *job, struct err *e);
json_t *job_list_folder(struct job *job, struct err *e);
json_t *job_delete(struct job *job, struct err *e);
json_t *job_move(struct job *job, struct err *e);
json_t *job_delete_conversation(struct job *job, struct err *e);

/* job_list.c */
json_t *job_list(struct job *job, struct err *e);
json_t *job_names(struct job *job, struct err *e);

/* job_links.c */
json_t *job_create_upload(struct job *job, struct err *e);
json_t *job_check_upload(struct job *job, struct err *e);
json_t *job_stage_upload(struct job *job, struct err *e);
json_t *job_finish_upload(struct job *job, struct err *e);
json_t *job_import_url(struct job *job, struct err *e);

/* job_archive.c */
json_t *job_archive_link(struct job *job, struct err *e);
json_t *job_pack(struct job *job, struct err *e);
json_t *job_unpack(struct job *job, struct err *e);

/* job_runs.c: of runs and persistent sandboxes whose process has ended. cancel_run is get_run
 * then, and a run that has just ended gets a moment to leave its result. */
json_t *job_get_run(struct job *job, struct err *e);
json_t *job_list_runs(struct job *job, struct err *e);
json_t *job_exec(struct job *job, struct err *e);
json_t *job_close_psandbox(struct job *job, struct err *e);
json_t *job_psandbox_logs(struct job *job, struct err *e);
json_t *job_psandbox_status(struct job *job, struct err *e);
json_t *job_status(struct job *job, struct err *e);
/* "runners", which the main process answers itself. */
json_t *job_runners(const struct runners *runners, struct err *e);

#endif
