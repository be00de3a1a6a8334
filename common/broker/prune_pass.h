/* One look at all that is kept, in a process of its own. Private to common/broker. */
#ifndef SANDCGI_BROKER_PRUNE_PASS_H
#define SANDCGI_BROKER_PRUNE_PASS_H

#include "common/sandbox/sandbox.h"

/*
 * Says on fd which sandboxes should go: {"purge":[{"name","lastUsed"}]} as often as needed, then
 * {"next": seconds}. When the other side has closed fd, and so has done what it wanted to, the
 * records are tidied.
 */
void retention_pass(const struct sandbox_root *root, int fd);

#endif
