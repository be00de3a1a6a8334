/*
 * The machine as one of several nodes behind an edge (nginx/cluster.md). Ids that clients get begin
 * with the name of their node, so that every edge finds it: "n2-<id>". Inside the server ids have
 * no name: it is added and removed here, at the border to the client. On one machine, whose node
 * has no name, ids stay as they are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define NODE_NAME_MAX 16

/* [a-z0-9]{1,16} */
bool node_name_ok(const char *name);

/* The name of this process's node; "" and NULL: none. It is copied. */
void node_set(const char *name);
/* "" when there is none. */
const char *node_name(void);

/* An id as clients get it: with its NUL at most NODE_NAME_MAX + 1 bytes more than id, and cut at
 * size. */
void node_add(const char *id, char *out, size_t size);
/* A client's id without this node's name; points into id. */
const char *node_strip(const char *id);
/* The other node that a client's id names; false: it names none, or there are no nodes. */
bool node_other(const char *id, char out[NODE_NAME_MAX + 1]);

/* ---- a conversation whose home is away (common/sandbox/stand_in.h) ---- */

#define NODE_STAND_IN     "\xEE\x80\x80" /* U+E000, then digits, then the client's name */
#define NODE_STAND_IN_HEX 8

/* From now on the broker knows this conversation by the name inside; NULL: no more. Both are
 * borrowed. */
void node_stand_in(const char *conversation, const char *inside);
/* Does this process stand in now? */
bool node_stands_in(void);
/* The name by which the broker knows a client's conversation, and back. */
const char *node_inside(const char *conversation);
const char *node_outside(const char *inside);
