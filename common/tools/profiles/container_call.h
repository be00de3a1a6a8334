/*
 * The set "container" inside: sandbox_* tools over our persistent sandboxes, each with a
 * conversation of its own whose directory is seen at /app. Every outcome is one text; failures
 * begin with "Error: ".
 */
#pragma once

#include "common/base/buf.h"
#include "common/protocol/client_runs.h"
#include "common/tools/profiles/adapt.h"

#define CONTAINER_FOLDER "/app"

/* What its clients call a container: 64 hex digits that lead back to one of our persistent
 * sandboxes. */
#define CONTAINER_ID_LEN       64
#define CONTAINER_PSANDBOX_LEN (sizeof(PSANDBOX_ID_PREFIX) - 1 + RUN_ID_LEN)

/* The id of a tenant's sandbox. psandbox_id as broker_create_psandbox told it. */
int container_id_of(const char *tenant, const char *psandbox_id, char out[CONTAINER_ID_LEN + 1],
                    struct err *e);

/* Back. ERR_NOT_FOUND, in one text, for everything that container_id_of did not make for this
 * tenant: ids of the engine's containers among them. */
int container_psandbox_of(const char *tenant, const char *id, char out[CONTAINER_PSANDBOX_LEN + 1],
                          struct err *e);

/* The arguments of all of its tools; each has some of them. */
struct container_arguments {
    const char *container, *image;
    const char *file_name, *dest_dir;
    struct run_text contents;
    struct arg_list commands;
};

/* A call about a container of this tenant. */
struct container_call {
    const struct mcp_tool_call *mcp;
    struct mcp_result *out;
    struct container_arguments a;
    json_t *known;                             /* holds the strings of a; owned */
    const struct arg_row *table;               /* that a was filled by */
    char psandbox[CONTAINER_PSANDBOX_LEN + 1]; /* the sandbox's id */
};

#define AUTO_CONTAINER_CALL AUTO(container_call_clear)
void container_call_clear(struct container_call *s);

/* Reads the arguments, finds the sandbox. False: out says what is wrong. */
bool container_begin(struct container_call *s, const struct arg_row *table);

void container_fail(struct mcp_result *out, const struct err *e);

/* The conversation whose files a running container sees; heap, or NULL. */
char *container_conversation(const struct container_call *s, struct err *e);

/* Appends what a command printed, as its clients read it. */
void container_add_command(const json_t *result, struct buf *out);

/* The name below /app of a file in folder (NULL: /app), or of an absolute path; heap, or NULL with
 * ERR_INVALID. */
char *container_file_name(const char *folder, const char *name, struct err *e);

/* The absolute path, without ".", ".." and empty parts, of one that begins where this server was
 * started. Heap; NULL for NULL and "". */
char *container_local_path(const char *path);

#define CONTAINER_ID_ROW                                                                           \
    ARG_ROW(struct container_arguments, container, "container_id", ARG_STRING, .required = true,   \
            .max = 256, .help = "ID of the container returned from the initialize call")

extern const struct mcp_resources container_resources; /* containers://{id}/logs */
