/* Jobs: operations of the broker, each in a child process, which may block. */
#pragma once

#include "common/sandbox/sandbox.h"
#include "common/scheduler/broker_config.h"
#include "common/scheduler/children.h"
#include "common/scheduler/pool.h"
#include "common/scheduler/run_queue.h"

#include <jansson.h>

/* The main process's state at the fork of a job. */
struct job_world {
    const struct broker_config *config;
    const struct sandbox_root *root;
    const struct runners *runners;
    struct children *children;
    const struct run_queue *queue;
    struct pool *pool;
};

/* What a job is given. Borrowed. */
struct job_call {
    const json_t *head;
    int fd;        /* the connection */
    int passed_fd; /* came with head; -1: none */
    int room_fd;   /* op_brings_content: holds the content's room; -1: none */
};

struct job {
    const struct job_world *world;
    const json_t *request; /* its head */
    int caller_fd;         /* the connection */
    int in_fd;             /* -1: none; the caller closes it */
    int room_fd;           /* of job_call */
    int out_fd;            /* set by the operation: rides along with the answer */
};

/* The file of a request. Borrowed from it. */
struct job_target {
    const char *tenant, *conversation, *name;
};

/* err_set of a handler: NULL. */
#define job_fail(...) (err_set(__VA_ARGS__), (json_t *)NULL)

/* Reads tenant and conversationId. */
int job_read_owner(const struct job *job, const char **tenant, const char **conversation,
                   struct err *e);
/* The same and the file name under key, which is checked; field names it in error texts. */
int job_read_target(const struct job *job, const char *key, const char *field,
                    struct job_target *out, struct err *e);
/* Reads the target under "name" and opens its sandbox, which must exist. */
int job_open_target(const struct job *job, struct job_target *out, struct sandbox *sb,
                    struct err *e);
/* Notes in the sandbox's record that its files were changed, or read; a failure is logged. */
void job_note_use(const struct sandbox *sb, const char *tenant, const char *conversation);
void job_note_reading(const struct sandbox *sb, const char *tenant, const char *conversation);
/* ERR_CANCELLED when the caller has closed the connection. A sandbox_watch's function, of the job.
 */
int job_check_caller(void *job, struct err *e);

/* job_room.c: room for a content of so many bytes, there of which are on the disk, that goes to the
 * sandbox (its fd -1: it is not there yet). Counts what the sandbox takes now. */
int job_take_room(const struct job *job, const struct sandbox *sb, const char *tenant,
                  uint64_t bytes, uint64_t there, struct err *e);
/* The same job's, later. */
int job_keep_room(const struct job *job, uint64_t bytes, uint64_t there, struct err *e);
/* The content is among the sandbox's files. */
void job_land(const struct job *job, uint64_t bytes);

/* job_main.c: carries out the operation of the call's head and sends the answer, also a failure, on
 * its connection. */
void job_main(const struct job_world *world, const struct job_call *call);

/* The handlers of job_main, as client_*.h describe the answers: new reference, or NULL. */

/* job_files.c; the main process moves the sandbox of delete_conversation to .trash before, and
 * empties it afterwards. */
json_t *job_put(struct job *job, struct err *e);
json_t *job_open(struct job *job, struct err *e);
json_t *job_open_url(struct job *job, struct err *e);
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

/* job_runs.c: of runs and persistent sandboxes whose supervisor has ended. cancel_run is get_run
 * then. */
json_t *job_get_run(struct job *job, struct err *e);
json_t *job_list_runs(struct job *job, struct err *e);
json_t *job_exec(struct job *job, struct err *e);
json_t *job_close_psandbox(struct job *job, struct err *e);
json_t *job_psandbox_logs(struct job *job, struct err *e);
json_t *job_psandbox_status(struct job *job, struct err *e);
json_t *job_ready(struct job *job, struct err *e);
json_t *job_status(struct job *job, struct err *e);
/* What the server and its containers take now, by purpose (purpose.h): {"run": bytes, …}, without
 * what cannot be seen from here. New reference. */
json_t *job_memory_new(const struct job_world *world);
/* "runners", which the main process calls. */
json_t *job_runners(const struct runners *runners, struct err *e);
