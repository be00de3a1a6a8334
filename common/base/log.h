/*
 * The log: one line per event on standard error, "level role: text". Control characters are escaped
 * and lines are cut at 2 KiB, since parts of the text may come from clients. Never give it tokens,
 * code, environment values or program output. Library layers log at debug only; the processes
 * (master, worker, broker) log the rest.
 */
#pragma once

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* role: the process ("master", "worker", "broker"); kept by pointer, so a literal. */
void log_setup(enum log_level level, const char *role);

/* For a forked child. */
void log_set_role(const char *role);

void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)
