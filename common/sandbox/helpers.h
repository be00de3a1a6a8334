/*
 * .helpers: what containers get from here, whatever their image: the entry program and the session
 * drivers of persistent sandboxes, /etc/hosts of all that have no network. They are part of this
 * program's file and are written out once, into a folder named by their content, so that containers
 * of an older version keep theirs. No container can write there.
 */
#pragma once

#include "common/sandbox/sandbox_root.h"

#define HELPERS_DIR ".helpers"

struct helper_file {
    const char *name; /* in the containers */
    const char *begin, *end;
};

/* Ends with name NULL. */
extern const struct helper_file helper_files[];

/*
 * Writes the files, mode 0555, each by a rename; a correct one stays. Returns the folder as the
 * engine's host sees it, for engine_spec.helpers_path; the caller frees it. NULL: ERR_IO.
 */
char *helpers_install(const struct sandbox_root *root, struct err *e);
