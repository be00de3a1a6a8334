#include "config.h"

#include "fcgi/nodes/sources.h"

#include "common/base/fdio.h"
#include "fcgi/nodes/kubernetes.h"
#include "fcgi/nodes/swarm.h"

#include <string.h>

static int file_check(const struct nodes_place *place, struct err *e)
{
    return place->file ? 0 : err_set(e, ERR_INVALID, "--from file needs --file");
}

static int file_look(const struct nodes_place *place, struct nodes *out, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(NODES_TEXT_MAX);

    if (fdio_read_file(place->file, &text, e) < 0)
        return -1;
    AUTO_FREE char *lines = buf_take(&text);
    return nodes_read(out, lines, e) < 0 ? err_wrap(e, "%s", place->file) : 0;
}

static const struct nodes_source sources[] = {
    {"file", true, file_check, file_look},
    {"kubernetes", false, kubernetes_check, kubernetes_look},
    {"swarm", false, swarm_check, swarm_look},
};

const struct nodes_source *nodes_source_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        if (strcmp(sources[i].name, name) == 0)
            return &sources[i];
    return NULL;
}
