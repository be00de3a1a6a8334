/* The networks that a container may have, the smallest first. */
#pragma once

enum network_tier {
    NETWORK_NONE,
    NETWORK_PUBLIC, /* the internet; nothing that is near: no private address, no host of ours */
    NETWORK_LAN,    /* what the engine's host reaches; other containers not */
    NETWORK_TIERS
};
