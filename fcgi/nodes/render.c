#include "config.h"

#include "fcgi/nodes/render.h"

#include <string.h>

#define MARK           "#: " /* before a node of the list in the comment */
#define KEPT_MIN       16    /* idle connections that an nginx worker keeps to a node */
#define KEPT_MAX       1024  /* to all of them */
#define GROUP_ZONE_KIB 1024
#define NODE_ZONE_KIB  64

/* A group with every node that does not leave. Weights of 10 even out the shares of the ring: 1.05
 * of the mean at most with 100 nodes, 1.24 with weights of 1. */
static const struct group {
    const char *name, *method, *server;
} groups[] = {
    {"any", "random two least_conn", "max_fails=2 fail_timeout=5s"},
    {"home", "hash $sandcgi_route consistent", "weight=10 max_fails=0"},
    {"away", "hash $sandcgi_route consistent", "weight=10 max_fails=1 fail_timeout=5s"},
};

static void add_server(struct buf *out, const struct node_row *row, const char *parameters)
{
    buf_addf(out, "    server %s:%u %s;\n", row->host, row->port, parameters);
}

static void add_group(struct buf *out, const struct group *g, const struct nodes *list)
{
    const size_t wanted = KEPT_MIN * nodes_count_homes(list);
    const size_t kept = wanted < KEPT_MAX ? wanted : KEPT_MAX;

    buf_addf(out, "upstream sandcgi_%s {\n    zone sandcgi_%s %dk;\n    %s;\n", g->name, g->name,
             GROUP_ZONE_KIB, g->method);
    for (size_t i = 0; i < list->n; i++)
        if (list->rows[i].state != NODE_LEAVING)
            add_server(out, &list->rows[i], g->server);
    buf_addf(out, "    keepalive %zu;\n}\n", kept);
}

static void add_node(struct buf *out, const struct node_row *row)
{
    buf_addf(out, "upstream node_%s {\n    zone node_%s %dk;\n", row->name, row->name,
             NODE_ZONE_KIB);
    add_server(out, row, "max_fails=0");
    buf_addf(out, "    keepalive %d;\n}\n", KEPT_MIN);
}

/* volatile: it is asked again after a redirect to another node. The colon: a name may be one of
 * map's own words. */
static void add_map(struct buf *out, const struct nodes *list)
{
    buf_add_str(out, "map :$sandcgi_want $sandcgi_node {\n    volatile;\n    default \"\";\n");
    for (size_t i = 0; i < list->n; i++)
        buf_addf(out, "    :%s node_%s;\n", list->rows[i].name, list->rows[i].name);
    buf_add_str(out, "}\n");
}

void nodes_render(const struct nodes *list, struct buf *out)
{
    buf_add_str(out, "# The nodes; written by \"sandcgi nodes\", which overwrites changes.\n");
    for (size_t i = 0; i < list->n; i++)
        buf_addf(out, MARK "%s %s:%u%s\n", list->rows[i].name, list->rows[i].host,
                 list->rows[i].port, list->rows[i].state == NODE_LEAVING ? " leaving" : "");
    for (size_t i = 0; i < ARRAY_LEN(groups); i++)
        add_group(out, &groups[i], list);
    for (size_t i = 0; i < list->n; i++)
        add_node(out, &list->rows[i]);
    add_map(out, list);
}

int nodes_rendered(char *text, int64_t now_ms, struct nodes *out, struct err *e)
{
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
        if (strncmp(line, MARK, strlen(MARK)) == 0 && nodes_read(out, line + strlen(MARK), e) < 0)
            return -1;
    for (size_t i = 0; i < out->n; i++)
        out->rows[i].seen_ms = now_ms;
    return 0;
}
