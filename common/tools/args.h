/*
 * A tool's arguments as a table: one row per argument makes its JSON schema, checks the call's
 * value and fills the tool's C struct, so that the three cannot drift apart. Pointers in the struct
 * point into the call's JSON and live as long as that; lists and maps are allocated and given back
 * by args_clear.
 *
 * args_call takes what has one meaning (args_mend.h), and passes over unknown arguments with a
 * notice. args_fill is strict: null is the same as absent for an optional argument, 30.0 the same
 * as 30; an unknown argument, or one of another type, is an error that names it and says what is
 * allowed.
 */
#pragma once

#include "common/base/err.h"
#include "common/mcp/features/tool.h"
#include "common/protocol/run.h"
#include "common/tools/tools_app.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum arg_type {
    ARG_STRING, /* const char *: valid UTF-8 without NUL */
    ARG_NAME,   /* const char *: as ARG_STRING, the name of a file or folder below /data; "/data/"
                   and "./" in front of it are passed over */
    ARG_IDENTIFIER, /* const char *: as ARG_STRING, not empty, no control characters */
    ARG_TEXT,       /* struct run_text: any text, NULs too; data NULL when absent */
    ARG_BASE64,     /* struct run_text: still encoded; the limit counts decoded bytes */
    ARG_BOOL,       /* bool */
    ARG_TIME,       /* uint64_t milliseconds, from ARG_TIME_MIN_MS to the limit; 0 when absent */
    ARG_INTEGER,    /* struct arg_integer, from 0 to the limit */
    ARG_LIST,       /* struct arg_list of strings without NUL; the limit counts all bytes */
    ARG_MAP,        /* struct arg_map of name to string without NUL; the limit counts all bytes */
};

#define ARG_TIME_MIN_MS 1000 /* what is less is a mistake, such as seconds */

struct arg_integer {
    bool given;
    uint64_t value;
};

struct arg_list {
    struct run_text *items;
    size_t n;
};

struct arg_map {
    struct run_env *items;
    size_t n;
};

/* A limit that is a setting: where it stands in struct broker_limits, plus one so that 0 can mean
 * "none". */
#define ARG_SETTING(field) (offsetof(struct broker_limits, field) + 1)

struct arg_row {
    const char *name;
    enum arg_type type;
    size_t offset; /* into the tool's struct */
    bool required;
    uint64_t max;           /* bytes; of ARG_TIME milliseconds; of ARG_INTEGER its value; or: */
    size_t max_setting;     /* ARG_SETTING(...), wins over max */
    size_t max_items;       /* of ARG_LIST and ARG_MAP */
    size_t initial_setting; /* ARG_TIME, ARG_INTEGER: the default told in the schema */
    const char *initial;    /* a string's default told in the schema; NULL: none */
    const char *help;       /* for the model */
    /*
     * The allowed strings as a new array; NULL when they are not known now and any is accepted.
     * wanted (may be NULL) is the value to check: if it is not in the kept list, ask again.
     */
    json_t *(*choices)(const struct tools_app *app, const char *wanted);
    /* Is it in tools/list? What is not is taken and checked all the same. NULL: always. */
    bool (*listed)(void *app);
    const char *also; /* other names that are taken, best first, separated by blanks; not in the
                         schema */
    bool is_code;     /* a program in the argument language; and is_shell: commands of a shell */
    bool is_shell;
    bool json_too;       /* a text that may come as JSON, which it is then the text of */
    bool below_data;     /* a string whose beginning may be /data, as of ARG_NAME */
    bool folder;         /* a name that may end in a slash */
    bool split;          /* of a list: blanks and commas separate entries */
    bool at_most;        /* a number that is cut to the limit; ARG_TIME always is */
    bool of_network;     /* not in tools/list where programs get no network */
    bool made;           /* a string that args_call makes when it is absent: a new conversation */
    const char *missing; /* for the error when a required one is absent; NULL: nothing to add */
    const char *larger;  /* for the error when it is too long: another way; NULL: none */
};

/* arg_row.listed of arguments that few calls need: common/README.md has them. */
bool args_unlisted(void *app);

/* A row for a member of the tool's struct; further fields by their names. */
#define ARG_ROW(arguments, member, argument, arg_type, ...)                                        \
    {                                                                                              \
        .name = (argument), .type = (arg_type), .offset = offsetof(arguments, member), __VA_ARGS__ \
    }

/* The members of struct mcp_tool for a table whose tool has this struct. */
#define ARGS_TABLE(table, type) .arguments = (table), .arguments_size = sizeof(type)

/* The value of a setting (ARG_SETTING), and a row's limit with this server's settings. */
uint64_t args_setting(const struct tools_app *app, size_t setting);
uint64_t args_limit(const struct arg_row *row, const struct tools_app *app);

/* For mcp_server.arguments: schemas of tables, calls of tools that have one. */
extern const struct mcp_arguments args_tables;

/* Appends a client's name of an argument to a message, cut and cleaned. */
void args_add_name(const char *name, struct buf *out);

/* Calls c->tool, which has run: mends its arguments, fills its struct, runs it, reports the error
 * and what was mended with a loss; exactly: takes the arguments as they are, for adapters. */
void args_call(const struct mcp_tool_call *c, struct mcp_result *out);
void args_call_exactly(const struct mcp_tool_call *c, struct mcp_result *out);

/*
 * Fills *out (zeroed by the caller) from arguments (an object, or NULL: none). ERR_INVALID or
 * ERR_LIMIT naming the argument. Call args_clear in either case.
 */
int args_fill(const struct arg_row *table, const struct tools_app *app, const json_t *arguments,
              void *out, struct err *e);
void args_clear(const struct arg_row *table, void *filled);

/* A macro's number as text, for descriptions. */
#define TEXT_OF(macro)  TEXT_OF_(macro)
#define TEXT_OF_(value) #value

/* ---- arguments that several tools have ---- */

#define CONVERSATION_MAX 256 /* bytes of a conversationId */
#define LANGUAGE_MAX     64

/* conversationId of a tool that may begin a conversation; its struct has the member
 * conversation. */
#define CONVERSATION_ROW(arguments)                                                                \
    ARG_ROW(arguments, conversation, "conversationId", ARG_IDENTIFIER, .made = true,               \
            .max = CONVERSATION_MAX, .help = "Whose /data. Left out: a new one.")

/* The same of a tool that works on files which are there already. */
#define OLD_CONVERSATION_ROW(arguments)                                                            \
    ARG_ROW(arguments, conversation, "conversationId", ARG_IDENTIFIER, .required = true,           \
            .missing = ": a new conversation has no files; give the one that an answer named",     \
            .max = CONVERSATION_MAX, .help = "Whose /data.")

/* Names a conversation in a result that has an object. */
void args_tell_conversation(const char *conversation, struct mcp_result *out);

/* filename of a tool; its struct has the member filename. */
#define FILENAME_ROW(arguments, what)                                                              \
    ARG_ROW(arguments, filename, "filename", ARG_NAME, .required = true, .max = FILES_NAME_MAX,    \
            .also = "path file filepath name", .help = what)

/* waitMs of a tool that runs something; its struct has struct arg_integer wait_ms. */
#define RUN_WAIT_ROW(arguments)                                                                    \
    ARG_ROW(arguments, wait_ms, "waitMs", ARG_INTEGER, .max_setting = ARG_SETTING(wait_max_ms),    \
            .initial_setting = ARG_SETTING(wait_ms), .listed = args_unlisted, .at_most = true,     \
            .help = "When the answer comes even if this still runs (status running; get_run "      \
                    "brings the rest). 0: at once.")
