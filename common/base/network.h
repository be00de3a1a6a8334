/* The networks that a container may have, the smallest first. */
#pragma once

enum network_tier {
    NETWORK_NONE,
    NETWORK_PUBLIC, /* the internet; nothing that is near: no private address, no host of ours */
    NETWORK_LAN,    /* what the engine's host reaches; other containers not */
    NETWORK_TIERS
};

/* "none", "public", "lan". */
const char *network_name(enum network_tier tier);
/* What the web server says with a name; one that is not known is the least. */
enum network_tier network_named(const char *name);
