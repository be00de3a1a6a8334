/* The one check of settings: that of "sandcgi check", of a start, and of a reload. */
#pragma once

#include "common/base/buf.h"
#include "fcgi/settings.h"

#include <signal.h>

/* Prints a line for each finding of check_settings to standard error, and "ok" to standard output.
 * Returns the exit status: 1 when a server would refuse the settings. */
int settings_check_print(const struct settings *s, const char *config_path);
/* The same of the settings of config_path (NULL: of the environment alone). */
int settings_check_print_file(const char *config_path);

/*
 * Has a child check: the program at that path, which reads the settings of config_path anew, or,
 * NULL, this program with s. A wrong setting, or a program that cannot start here, must not end a
 * running server. mask: the child's blocked signals. notes gets a line for each note. -1: *e is
 * the first fault.
 */
int settings_check_ask(const char *program, const struct settings *s, const char *config_path,
                       const sigset_t *mask, struct buf *notes, struct err *e);
/* Logs each note; fd: of the order that it answers, too (control.h); -1: none. */
void settings_check_tell(const char *notes, int fd);
