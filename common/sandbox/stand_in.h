/*
 * Conversations that this node serves in the stead of their homes, which are away. Each has files
 * of its own here, under another name than the client's (node_inside): so what is written meanwhile
 * never mixes with what the home has. A note about each is in the sessions' directory, which
 * workers can write. As soon as the home takes connections again the name is given up, so that the
 * next absence begins with no files, and what it had is removed.
 */
#pragma once

#include "common/base/err.h"
#include "common/sandbox/sandbox.h"

#include <stdbool.h>

#define STAND_IN_DIR    ".away" /* of the notes; made when the server starts */
#define STAND_IN_KEPT_S 3600    /* after the last call */

/* The name of the conversation's files here while home (ADDRESS:PORT, as the edge says) is away.
 * ERR_LIMIT: the conversation's own name is too long for that. */
int stand_in_open(int sessions_fd, const char *tenant, const char *conversation, const char *home,
                  char inside[SANDBOX_ID_MAX + 1], struct err *e);

/*
 * Gives up those whose home takes connections again, or whose last call was STAND_IN_KEPT_S ago,
 * and has them removed: remove returns false for files that are in use, which are
 * tried again by the next look. Connecting to a home that is away may take some 300 ms. For one
 * process of the server. Returns how many notes are left.
 */
size_t stand_ins_look(int sessions_fd,
                      bool (*remove)(void *ctx, const char *tenant, const char *inside), void *ctx);
