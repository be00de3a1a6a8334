/*
 * The set "session" inside: sandbox_* tools over one conversation per session_id. Every outcome is
 * a model, returned as JSON text and as {"result": model}; failures are models with a code.
 */
#pragma once

#include "common/tools/profiles/adapt.h"

#define SESSION_ID_MAX 64
#define SESSION_FOLDER "/mnt/data/"

/* The error code for an impossible session_id: some of its tools say that it is invalid, others
 * that there is no such session. */
#define SESSION_ID_INVALID "invalid_session_id"
#define SESSION_ID_UNKNOWN "session_not_found"

/* The arguments of all of its tools; each has some of them. */
struct session_arguments {
    const char *session;  /* NULL: none was named */
    const char *filename; /* of upload */
    const char *path;     /* of read: below SESSION_FOLDER */
    struct run_text content, code;
    bool overwrite;
};

/* A call whose arguments are checked. */
struct session_call {
    const struct mcp_tool_call *mcp;
    struct mcp_result *out;
    struct session_arguments a;
    const char *bad_id;          /* SESSION_ID_INVALID or SESSION_ID_UNKNOWN */
    char id[SESSION_ID_MAX + 1]; /* the session's, which is its conversationId */
    json_t *known;               /* holds the strings of a; owned */
};

#define AUTO_SESSION_CALL AUTO(session_call_clear)
void session_call_clear(struct session_call *s);

/*
 * Reads the arguments and settles the id: a new one when the call names none. With must_exist only
 * a session that has had an upload or a run is good enough. False: out says what is wrong.
 */
bool session_begin(struct session_call *s, const struct arg_row *table, bool must_exist);

/* Has it had an upload or a run? -1: unknown, *e says why. */
int session_exists(const struct session_call *s, struct err *e);

/* Tells a model (taken). */
void session_tell(struct mcp_result *out, json_t *take_model);

/* Tells a failure: its code, and a sentence. */
void session_fail(struct mcp_result *out, const char *code, const char *message);

/* The same from an error; codes of this tool for some kinds, the usual ones for the others. */
struct session_codes {
    const char *invalid, *limit, *not_found, *busy;
};
void session_fail_err(struct mcp_result *out, const struct err *e,
                      const struct session_codes *codes);

/* A file as an artifact; url NULL: none. */
json_t *session_artifact(const char *name, json_int_t size, const char *type, const char *url);
