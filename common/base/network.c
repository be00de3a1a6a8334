#include "config.h"

#include "common/base/network.h"

#include <string.h>

static const char *const names[NETWORK_TIERS] = {"none", "public", "lan"};

const char *network_name(enum network_tier tier)
{
    return names[tier];
}

enum network_tier network_named(const char *name)
{
    for (enum network_tier tier = NETWORK_NONE; tier < NETWORK_TIERS; tier++)
        if (strcmp(name, names[tier]) == 0)
            return tier;
    return NETWORK_NONE;
}
