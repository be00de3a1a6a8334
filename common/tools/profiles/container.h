/*
 * The set "container" inside: sandbox_* tools over our persistent sandboxes, each with a
 * conversation of its own whose directory is seen at /app. Whatever happens is one text; failures
 * begin with "Error: ".
 */
#ifndef SANDCGI_TOOLS_PROFILES_CONTAINER_H
#define SANDCGI_TOOLS_PROFILES_CONTAINER_H

#include "common/base/buf.h"
#include "common/tools/profiles/adapt.h"
#include "common/tools/profiles/container_id.h"

#define CONTAINER_FOLDER "/app"

/* The arguments of all of its tools; each has some of them. */
struct container_arguments {
    const char *container, *image;
    const char *file_name, *dest_dir;
    struct run_text contents;
    struct arg_list commands;
};

/* A call about a container: whose it is was checked. */
struct container_call {
    const struct mcp_tool_call *mcp;
    struct mcp_result *out;
    struct container_arguments a;
    json_t *known;                             /* what a points into; owned */
    const struct arg_row *table;               /* that a was filled by */
    char psandbox[CONTAINER_PSANDBOX_LEN + 1]; /* the sandbox's id */
};

#define AUTO_CONTAINER_CALL AUTO(container_call_clear)
void container_call_clear(struct container_call *s);

/* Reads the arguments, finds the sandbox. False: out says what is wrong. */
bool container_begin(struct container_call *s, const struct arg_row *table);

void container_fail(struct mcp_result *out, const struct err *e);

/* Appends what stands between a call and its commands. */
void container_add_failure(const struct err *e, struct buf *out);

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
    {                                                                                              \
        .name = "container_id", .type = ARG_STRING,                                                \
        .offset = offsetof(struct container_arguments, container), .required = true, .max = 256,   \
        .help = "ID of the container returned from the initialize call"                            \
    }

extern const struct mcp_resources container_resources;

#define CONTAINER_COPY_TOOLS 3
extern const struct mcp_tool container_copy_tools[];

#endif
