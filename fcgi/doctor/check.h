/* What the settings name must be there: accounts, folders, files, images. */
#pragma once

#include "fcgi/doctor/findings.h"
#include "fcgi/process/resources.h"

/* Are the settings those of a client that starts "sandcgi stdio"? Such a server has no socket, no
 * worker and no token. */
bool check_is_stdio(const struct settings *s);

/*
 * Looks at the settings of the file at config_path (NULL: none) on this machine, and changes
 * nothing. Adds a finding for each fault; those for which serve would refuse to start, or would
 * show a secret to other accounts, are FINDING_WRONG. Asks the engine for its images, for two
 * seconds at most.
 */
void check_settings(const struct settings *s, const char *config_path, struct findings *out);
/* The same without the engine. */
void check_machine(const struct settings *s, const char *config_path, struct findings *out);
/* Has each language of SANDBOX_WARM an image? Notes only: it may be built while the server runs. */
void check_warm(const struct settings *s, const struct engine_runners *list, struct findings *out);
