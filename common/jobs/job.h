/* A short operation of the broker, in a process of its own. Private to common/broker. */
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

/* What an operation works on: the request, its passed descriptor, and what the reply carries
 * besides the result. */
struct job {
    const struct job_world *world;
    const json_t *request; /* its head */
    int caller_fd;         /* the connection: hangs up when nobody waits for the answer any more */
    int in_fd;             /* -1: none; the caller closes it */
    int out_fd;            /* the operation sets it to what rides along with the reply */
};

/* Whose file the request is about. Borrowed from the request. */
struct job_target {
    const char *tenant, *conversation, *name;
};

/* Reads tenant, conversation and the name under key, which is checked (files_check_name) and called
 * field in what is said of it. */
int job_read_target(const struct job *job, const char *key, const char *field,
                    struct job_target *out, struct err *e);
/* Keeps the sandbox's record up to date when its files were changed, or (the second) one was read;
 * a failure is logged and hinders nobody's work. */
void job_note_use(const struct sandbox *sb, const char *tenant, const char *conversation);
void job_note_reading(const struct sandbox *sb, const char *tenant, const char *conversation);

/* Carries out what head asks for, answers on fd. passed_fd rode along with head, -1: none. Never
 * fails towards the caller: failures are answers. */
void job_handle(const struct job_world *world, int fd, const json_t *head, int passed_fd);

/* "put", "open", "list_folder", "delete" and "move" (job_files.c): new reference, or NULL. */
json_t *job_put(struct job *job, struct err *e);
json_t *job_open(struct job *job, struct err *e);
json_t *job_list_folder(struct job *job, struct err *e);
json_t *job_delete(struct job *job, struct err *e);
json_t *job_move(struct job *job, struct err *e);

/* The "list" and "names" operations (job_list.c): new reference, or NULL. */
json_t *job_list(const struct job_world *world, const json_t *request, struct err *e);
json_t *job_names(const struct job_world *world, const json_t *request, struct err *e);

/* Uploads by ticket (job_links.c): what client_files.h says of each. */
json_t *job_create_upload(struct job *job, struct err *e);
json_t *job_check_upload(struct job *job, struct err *e);
json_t *job_stage_upload(struct job *job, struct err *e);
json_t *job_finish_upload(struct job *job, struct err *e);
/* The "import_url" operation (job_import.c). */
json_t *job_import_url(struct job *job, struct err *e);
/* The conversation's sandbox; where there is none one with fd -1, which takes no room (quota.h). */
void job_find_or_none(const struct job *job, const char *tenant, const char *conversation,
                      struct sandbox *out);
/* Moves a whole content into the sandbox: {tenant, conversation, name, size, url}, what keeping.h
 * tells, or NULL. */
struct upload_body;
json_t *job_put_body(const struct sandbox *sb, const struct job_target *target,
                     struct upload_body *body, struct err *e);

/* Lasting sandboxes that no process answers for (job_stay.c), as above: "exec", "close_psandbox",
 * "psandbox_logs", and "psandbox_status" of all. */
json_t *job_psandbox_ended(struct job *job, struct err *e);
json_t *job_close_psandbox(struct job *job, struct err *e);
json_t *job_psandbox_logs(struct job *job, struct err *e);
json_t *job_psandbox_status(struct job *job, struct err *e);
/* The "delete_conversation" operation (job_remove.c), whose sandbox the main process has moved to
 * .trash, which it has emptied when the job has ended; as above. */
json_t *job_remove(struct job *job, struct err *e);

/* The "runners" and "status" operations (job_status.c), as above. */
json_t *job_runners(const struct runners *runners, struct err *e);
json_t *job_status(const struct job_world *world);

/* "archive_link", "pack" and "unpack" (job_archive.c), as above. */
json_t *job_archive_link(struct job *job, struct err *e);
json_t *job_pack(struct job *job, struct err *e);
json_t *job_unpack(struct job *job, struct err *e);

#endif
