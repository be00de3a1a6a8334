/* The edge's upstream groups, as a file that nginx includes (nginx/edge.conf.in). */
#pragma once

#include "common/base/buf.h"
#include "fcgi/nodes/nodes.h"

#define NODES_RENDER_MAX (4u * 1024 * 1024)

/* Appends the file for a list of at least one node that does not leave: a comment with the list,
 * the groups sandcgi_any, sandcgi_home, sandcgi_away and node_<name>, and the map $sandcgi_want ->
 * $sandcgi_node. The same list gives the same bytes. */
void nodes_render(const struct nodes *list, struct buf *out);

/* The list that stands in a rendered file (empty where there is none), each node seen at now_ms.
 * text is changed. */
int nodes_rendered(char *text, int64_t now_ms, struct nodes *out, struct err *e);
