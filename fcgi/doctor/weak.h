/* Settings that work, and weaken the server. */
#pragma once

#include "fcgi/doctor/findings.h"
#include "fcgi/settings.h"

/* Adds a note for each. Asks nothing but the table of accounts. */
void check_weak(const struct settings *s, struct findings *out);
