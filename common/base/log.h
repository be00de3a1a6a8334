/*
 * The log: one line per event on standard error, "time level role: text name=value …" or a JSON
 * object. Control characters are escaped and lines are cut at 2 KiB, since parts of the text may
 * come from clients. Never give it tokens, code, environment values or program output. Library
 * layers log at debug only; the processes (master, worker, broker) log the rest.
 */
#pragma once

#include "common/base/err.h"

#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

/* role: the process ("master", "worker", "broker"); kept by pointer, so a literal. */
void log_setup(enum log_level level, const char *role);

/* From now on lines begin with the time; under journald (JOURNAL_STREAM is our standard error) with
 * its priority instead, as journald notes the time itself. */
void log_set_format(enum log_format form);

/* For a forked child. */
void log_set_role(const char *role);

/*
 * Appends to the file at path (made with mode 0640) instead of standard error, in this process and
 * those that it starts. log_reopen opens it again after a rotation; without log_open it does
 * nothing. Of a failure the old one stays.
 */
int log_open(const char *path, struct err *e);
int log_reopen(struct err *e);

/*
 * The latest warnings and errors, in memory that this process and those that it forks from now on
 * share; log_unshare: for one that must not see or write it.
 */
#define LOG_RECENT     6
#define LOG_RECENT_MAX 240 /* bytes of one, with the NUL */
void log_share(void);
void log_unshare(void);
/* The lines, the oldest first; returns how many there are. */
size_t log_recent(char out[LOG_RECENT][LOG_RECENT_MAX]);

/* What every line of this process says besides, while it serves one call. */
enum log_note {
    LOG_REASON, /* why it is refused: a word of ours. The first one counts */
    LOG_TOOL,   /* that is refused, one of ours */
    LOG_ARGUMENT,
    LOG_TENANT,
    LOG_CLIENT,
    LOG_CONVERSATION,
    LOG_RUN,
    LOG_TRACE,
    LOG_NOTES
};

/* value is copied, and cut at 64 bytes; NULL or "": the line does not have it. */
void log_note(enum log_note note, const char *value);
/* "": not noted. */
const char *log_noted(enum log_note note);
void log_forget(void);

/* Where a call is refused: notes the reason, unless there is one. argument: the name of the one
 * that is wrong, never its value; NULL: none. One that is not a plain word is not noted. */
void log_reason(const char *reason, const char *argument);
/* What was noted as refused was not, or is logged: drops reason, tool and argument. */
void log_forget_reason(void);

/* A member of a line, besides its text. */
struct log_field {
    const char *name; /* a literal of letters */
    const char *text; /* NULL: number */
    int64_t number;
};

void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Fields whose text is "" are left out. */
void log_with(enum log_level level, const struct log_field *fields, size_t n, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)
