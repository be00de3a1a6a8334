/*
 * .tools: the programs that containers which stay get from us, whatever their image: the entry
 * program and the session drivers. They are part of this program's file and are written out once,
 * into a folder whose name comes from their content, so that containers of an older version keep
 * theirs. No container can write there.
 */
#ifndef SANDCGI_SANDBOX_HELPERS_H
#define SANDCGI_SANDBOX_HELPERS_H

#include "common/sandbox/sandbox.h"

#define HELPERS_DIR ".tools"

/*
 * Puts the files in place, mode 0555, each at once; what is there already and right stays. Returns
 * the folder as the engine's host sees it, for engine_spec.helpers_path; the caller frees it. NULL:
 * ERR_IO.
 */
char *helpers_install(const struct sandbox_root *root, struct err *e);

#endif
