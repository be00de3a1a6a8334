/* What names the edge's nodes: an operator's file, the answers of a Swarm and of Kubernetes. The
 * list that is taken can be written for nginx, and reads back as it was. The first byte says which
 * one it is. */
#include "config.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "fcgi/nodes/kubernetes.h"
#include "fcgi/nodes/render.h"
#include "fcgi/nodes/swarm.h"
#include "tests/fuzz/fuzz.h"

static const struct nodes_place place = {.service = "front"};

static int read_json(char kind, const char *text, size_t len, struct nodes *out, struct err *e)
{
    json_auto_t *value = json_parse(text, len, JSON_MAX_DEPTH, e);

    if (!value)
        return -1;
    if (kind == 'k')
        return kubernetes_read(value, &place, out, e);
    return swarm_read(json_object_get(value, "services"), json_object_get(value, "nodes"),
                      json_object_get(value, "tasks"), &place, out, e);
}

static void check_list(const struct nodes *list)
{
    AUTO_BUF struct buf text = BUF_INIT(NODES_RENDER_MAX);
    AUTO_NODES struct nodes again = {0};
    struct err e = ERR_INIT;

    nodes_render(list, &text);
    PROMISE(buf_ok(&text));
    AUTO_FREE char *copy = buf_take(&text);
    PROMISE(nodes_rendered(copy, 0, &again, &e) == 0 && again.n == list->n);
    for (size_t i = 0; i < list->n; i++)
        PROMISE(strcmp(list->rows[i].name, again.rows[i].name) == 0 &&
                strcmp(list->rows[i].host, again.rows[i].host) == 0 &&
                list->rows[i].port == again.rows[i].port &&
                (list->rows[i].state == NODE_LEAVING) == (again.rows[i].state == NODE_LEAVING));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_NODES struct nodes list = {0};
    struct err e = ERR_INIT;

    if (len < 1)
        return 0;
    AUTO_FREE char *text = mem_strndup((const char *)data + 1, len - 1);
    int rc = data[0] == 'f' ? nodes_read(&list, text, &e)
                            : read_json((char)data[0], text, len - 1, &list, &e);
    if (rc < 0)
        promise_error(&e);
    else
        check_list(&list);
    return 0;
}
