/* One connection of the broker, handled in a child of its own. Private to common/broker. */
#ifndef SANDCGI_BROKER_JOB_H
#define SANDCGI_BROKER_JOB_H

#include "common/broker/admission.h"
#include "common/broker/children.h"
#include "common/broker/server.h"
#include "common/broker/slots.h"
#include "common/sandbox/sandbox.h"

#include <jansson.h>

/* What a child inherits from the broker at its fork. */
struct job_world {
    const struct broker_config *config;
    const struct sandbox_root *root;
    const struct engine_runners *runners;
    const char *engine_trouble; /* why the engine cannot be reached; "" = it can */
    struct slots *slots;
    const struct children *children; /* the books as they were then, also below */
    const struct admission *admission;
};

/* Reads the request from fd, carries it out, answers. Never fails towards the caller: failures are
 * answers. */
void job_handle(const struct job_world *world, int fd);

/* The "run" operation (job_run.c): returns its result (new reference) or NULL; *finish_later is the
 * engine to finish and free after the answer has been sent, or NULL. */
json_t *job_run(const struct job_world *world, int fd, const json_t *request,
                struct engine **finish_later, struct err *e);

/* The "list" and "names" operations (job_list.c): new reference, or NULL. */
json_t *job_list(const struct job_world *world, const json_t *request, struct err *e);
json_t *job_names(const struct job_world *world, const json_t *request, struct err *e);

/* Keeps the sandbox's record up to date; a failure is logged and hinders nobody's work. */
void job_note_use(const struct sandbox *sb, const char *tenant, const char *conversation);

#endif
