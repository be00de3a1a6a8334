/* What a reload asks before anything changes. */
#pragma once

#include <signal.h>
#include <stdbool.h>

/*
 * Has the program at that path look at the settings of config_path (NULL: of the environment
 * alone): a wrong setting, or a program that cannot start here, must not end a running server.
 * False: it does not accept them, and its complaint was logged. mask: its blocked signals.
 */
bool reload_check(const char *program, const char *config_path, const sigset_t *mask);
