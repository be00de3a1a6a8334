/* What the settings name must be there: accounts, folders, files, images. */
#pragma once

#include "fcgi/doctor/findings.h"
#include "fcgi/process/resources.h"

/*
 * Looks at the settings of the file at config_path (NULL: none) on this machine, and changes
 * nothing. Adds a finding for each fault; those for which serve would refuse to start, or would
 * show a secret to other accounts, are FINDING_WRONG. Asks the engine for its images, for some
 * seconds at most.
 */
void check_settings(const struct settings *s, const char *config_path, struct findings *out);
/* The same without the engine. */
void check_machine(const struct settings *s, const char *config_path, struct findings *out);
/* Has each language of SANDBOX_WARM an image? A note only for the default, which names languages
 * that a server may do without. */
void check_warm(const struct settings *s, const struct engine_runners *list, struct findings *out);

/* Checks what can be checked without a change, as a bad configuration must not end a running
 * server; finds the workers' account. */
int check_usable(const struct settings *s, struct account *workers, struct err *e);
