/* The kinds of stores: which one the settings name, and whether they are right. */
#pragma once

#include "common/store/store.h"
#include "common/store/store_settings.h"

/* Are they settings of a store? ERR_INVALID names the setting. */
int store_settings_check(const struct store_settings *s, const char *root_path, struct err *e);

/* Asks nothing of it yet. NULL: *e. */
struct store *store_open(const struct store_settings *s, struct err *e);
