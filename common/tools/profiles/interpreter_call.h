/*
 * The set "interpreter" inside: Python sessions that keep their variables, one per session_id,
 * which is the conversationId. Results are objects, or a text; failures are objects with error.
 */
#pragma once

#include "common/tools/args.h"
#include "common/tools/profiles/adapt.h"

/* The arguments of all of its tools; each has some of them. */
struct interpreter_arguments {
    const char *session; /* NULL: none was named */
    const char *package, *path, *file_name, *destination;
    struct run_text code, content;
};

/* A call whose arguments are checked. */
struct interpreter_call {
    const struct mcp_tool_call *mcp;
    struct mcp_result *out;
    struct interpreter_arguments a;
    json_t *known; /* holds the strings of a; owned */
};

#define AUTO_INTERPRETER_CALL AUTO(interpreter_call_clear)
void interpreter_call_clear(struct interpreter_call *s);

/* Reads the arguments. False: out says what is wrong. */
bool interpreter_begin(struct interpreter_call *s, const struct arg_row *table);
/* The same, and the session must have been created. */
bool interpreter_begin_active(struct interpreter_call *s, const struct arg_row *table);

/* The session_ids that have an interpreter, an array of strings; of one conversation, or (NULL) of
 * all. New reference, or NULL. */
json_t *interpreter_sessions(const struct mcp_tool_call *c, const char *session, struct err *e);

/* 1: its interpreter is there, 0: it is not (any more), -1. */
int interpreter_is_active(const struct mcp_tool_call *c, const char *session, struct err *e);

/* {error} */
void interpreter_fail(struct mcp_result *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The text of an error as it may be told; in *e itself. */
const char *interpreter_text(struct err *e);

/* The name below the sandbox's directory, "" for that itself; heap, or NULL: out says why. */
char *interpreter_name(struct mcp_result *out, const char *path);

#define INTERPRETER_SESSION                                                                        \
    ARG_ROW(struct interpreter_arguments, session, "session_id", ARG_IDENTIFIER, .required = true, \
            .max = CONVERSATION_MAX, .help = "The unique identifier of the sandbox session.")
#define INTERPRETER_TEXT(member, text, must, most, what)                                           \
    ARG_ROW(struct interpreter_arguments, member, text, ARG_STRING, .required = (must),            \
            .max = (most), .help = (what))

extern const struct mcp_tool interpreter_file_tools[], interpreter_chart_tools[];
#define INTERPRETER_FILE_TOOLS  4
#define INTERPRETER_CHART_TOOLS 5
