/* What this machine knows of a conversation in the store (save.h): .state/saved/<name>. */
#pragma once

#include "common/sandbox/sandbox_root.h"
#include "common/store/manifest.h"

enum record_state { RECORD_NONE, RECORD_STALE, RECORD_KEPT };

/* Damaged: RECORD_NONE. */
enum record_state save_record_read(const struct sandbox_root *root, const char *name,
                                   struct manifest *out);
/* m NULL: the empty one, RECORD_STALE. Puts it beside, as <name>.new, when beside says so:
 * save_record_put moves it to its place. */
int save_record_write(const struct sandbox_root *root, const char *name, const struct manifest *m,
                      bool beside, struct err *e);
int save_record_put(const struct sandbox_root *root, const char *name, struct err *e);
void save_record_remove(const struct sandbox_root *root, const char *name);

/* The time as a manifest has it: what cannot be counted in nanoseconds of 64 bits is 0. */
struct timespec save_time(struct timespec t);
