#include "config.h"

#include "common/engine/docker_reap.h"

#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/engine/docker.h"
#include "common/engine/docker_config.h"
#include "common/rpc/json.h"

#include <string.h>

static bool label_is(const json_t *labels, const char *name, const char *value)
{
    const char *text = json_get_string(labels, name);

    return text && strcmp(text, value) == 0;
}

bool reap_read(const json_t *container, const char *instance, const char **out_run_id,
               int64_t *out_deadline)
{
    const json_t *labels = json_object_get(container, "Labels");
    const char *deadline = json_get_string(labels, LABEL_DEADLINE);
    const char *run_id = json_get_string(labels, LABEL_RUN);
    uint64_t at = 0;

    /* The engine filters too, but some engines match parts of labels. */
    if (!label_is(labels, LABEL_MANAGED, "true") || !label_is(labels, LABEL_INSTANCE, instance))
        return false;
    if (!deadline || parse_u64(deadline, 0, INT64_MAX, &at) < 0)
        at = 0;
    *out_run_id = run_id ? run_id : "";
    *out_deadline = (int64_t)at;
    return true;
}

/* The path that lists this instance's containers, stopped ones too. */
static int list_path(const char *instance, struct buf *out, struct err *e)
{
    AUTO_FREE char *own = mem_printf("%s=%s", LABEL_INSTANCE, instance);
    AUTO_BUF struct buf filters = BUF_INIT(4096);
    json_auto_t *value = json_pack("{s:[s, s]}", "label", LABEL_MANAGED "=true", own);

    if (!value || json_write(value, &filters) < 0)
        return err_set(e, ERR_INVALID, "the instance's name cannot be a label");
    buf_add_str(out, "/containers/json?all=1&filters=");
    docker_http_escape(out, buf_str(&filters));
    return buf_ok(out) ? 0 : err_set(e, ERR_LIMIT, "the instance's name is too long");
}

static json_t *list(struct docker *d, const char *instance, struct err *e)
{
    AUTO_BUF struct buf path = BUF_INIT(16384);
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_LARGE_REPLY);
    json_t *containers;
    int status;

    if (list_path(instance, &path, e) < 0)
        return NULL;
    status = docker_http_call(d->http, "GET", buf_str(&path), NULL, DOCKER_QUESTION_MS, &reply, e);
    if (status < 0)
        return NULL;
    if (status >= 400) {
        docker_http_refused(status, reply.data, reply.len, e);
        return NULL;
    }
    containers = json_parse(buf_str(&reply), reply.len, JSON_MAX_DEPTH, e);
    if (!containers)
        err_wrap(e, "the container engine's list of containers");
    return containers;
}

int docker_reap(struct engine *engine, const char *instance,
                bool (*orphan)(void *ctx, const char *run_id, int64_t deadline_unix), void *ctx,
                size_t *seen, struct err *e)
{
    struct docker *d = (struct docker *)engine;
    json_auto_t *containers = list(d, instance, e);
    int removed = 0, failed = 0;
    size_t i;
    const json_t *item;

    *seen = 0;
    if (!containers)
        return -1;
    json_array_foreach(containers, i, item)
    {
        const char *id = json_get_string(item, "Id"), *run_id;
        int64_t deadline;

        if (!container_id_ok(id) || !reap_read(item, instance, &run_id, &deadline))
            continue;
        ++*seen;
        if (!orphan(ctx, run_id, deadline))
            continue;
        /* One that cannot be removed must not keep the others alive. */
        int gone = docker_remove(d, id, e);
        failed += gone < 0;
        removed += gone > 0;
    }
    return failed ? -1 : removed;
}
