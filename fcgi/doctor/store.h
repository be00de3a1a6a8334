/* Does the store (SANDBOX_STORE) answer, and may it be written? */
#pragma once

#include "fcgi/doctor/findings.h"
#include "fcgi/settings.h"

/* Puts an object of its own there, reads it and removes it; for some seconds at most where the
 * store answers. Nothing without a store. */
void store_look(const struct settings *s, struct findings *out);
