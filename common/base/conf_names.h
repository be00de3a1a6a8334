/* Names of settings that were probably meant by another one. */
#pragma once

#include "common/base/conf.h"

/* How many letters must be put in, taken away or changed to make the one name of the other,
 * whatever the case. SIZE_MAX: b has over 64 letters. */
size_t conf_names_distance(const char *a, const char *b);

/*
 * The setting whose name is nearest to name, whatever the case: with at most `most` letters to put
 * in, take away or change. NULL: none.
 */
const char *conf_names_nearest(const struct conf_row *table, const char *name, size_t most);

/* How many letters a name may differ from another one and still be meant for it, if nothing else
 * says that it is one of ours. */
size_t conf_names_slips(const char *name);

/* True when the table has a name with the same part up to the first '_', whatever the case. */
bool conf_names_prefix_is_ours(const struct conf_row *table, const char *name);
