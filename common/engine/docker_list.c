#include "config.h"

#include "common/engine/docker_list.h"

#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/engine/cgroup.h"
#include "common/engine/docker_config.h"
#include "common/engine/docker_self.h"
#include "common/rpc/json.h"

#include <string.h>

/* ---- images ---- */

#define LANGUAGE_MAX 32

/* text when it is short and printable, else "". */
static const char *label_or_empty(const json_t *labels, const char *name, size_t max)
{
    const char *text = json_get_string(labels, name);

    if (!text || strlen(text) > max)
        return "";
    for (const char *p = text; *p; p++) {
        if ((unsigned char)*p < ' ' || (unsigned char)*p == 0x7f)
            return "";
    }
    return text;
}

/* The first of the image's tags that the list admits; a dangling image has none. */
static const char *allowed_tag(const json_t *image, const char *allow)
{
    const json_t *tags = json_object_get(image, "RepoTags");
    size_t i;
    const json_t *item;

    json_array_foreach(tags, i, item)
    {
        const char *tag = json_string_value(item);

        if (tag && strlen(tag) <= RUNNER_IMAGE_MAX && strncmp(tag, "<none>", 6) != 0 &&
            engine_image_allowed(allow, tag))
            return tag;
    }
    return NULL;
}

static bool label_is(const json_t *labels, const char *name, const char *value)
{
    const char *text = json_get_string(labels, name);

    return text && strcmp(text, value) == 0;
}

/* The next word of a list with blanks between, from *at on; its length, 0: there is none. */
static size_t next_word(const char **at, const char **out)
{
    size_t len;

    *out = *at + strspn(*at, " ");
    len = strcspn(*out, " ");
    *at = *out + len;
    return len;
}

static bool list_has(const char *list, const char *word)
{
    const char *found;
    size_t len;

    while ((len = next_word(&list, &found)) > 0) {
        if (strlen(word) == len && memcmp(found, word, len) == 0)
            return true;
    }
    return false;
}

/* 0, 2 or 3; -1: one that we do not speak, which is no reason to feed the image plain code. */
static int read_protocol(const json_t *labels)
{
    const char *text = json_get_string(labels, "sandbox.protocol");

    if (!text)
        return 0;
    if (strlen(text) != 1 || !strchr("023", *text))
        return -1;
    return *text - '0';
}

/* What the image's languages have in common, in borrowed strings; false when it is no runner of
 * ours. */
static bool read_image(const json_t *image, const char *allow, struct engine_runner *out)
{
    const json_t *labels = json_object_get(image, "Labels");
    const char *id = json_get_string(image, "Id");

    *out = (struct engine_runner){
        .image = (char *)allowed_tag(image, allow),
        .image_id = (char *)(id && strlen(id) <= 128 ? id : ""),
        .protocol = read_protocol(labels),
        .preload = (char *)"",
        .created = json_get_integer(image, "Created", 0),
    };
    out->warm = out->protocol > 0 && label_is(labels, "sandbox.warm", "true");
    return label_is(labels, "sandbox.runner", "true") && out->image && out->protocol >= 0;
}

/* A label of one language of the image: if that has several, behind name stands the language's. */
static char *own_label(const json_t *labels, const char *name, const char *language, size_t max)
{
    bool several = strchr(json_get_string(labels, "sandbox.language"), ' ') != NULL;
    AUTO_FREE char *own = several ? mem_printf("%s.%s", name, language) : mem_strdup(name);

    return (char *)label_or_empty(labels, own, max);
}

/* Fills in what the labels say of r->language; first: its interpreter is the one that waits. */
static void read_language(const json_t *labels, bool first, struct engine_runner *r)
{
    const char *install = label_or_empty(labels, "sandbox.install", RUNNER_LANGUAGES_MAX);

    r->version = own_label(labels, "sandbox.version", r->language, RUNNER_VERSION_MAX);
    r->libraries = own_label(labels, "sandbox.libraries", r->language, RUNNER_LIBRARIES_MAX);
    r->install = r->protocol > 0 &&
                 (strcmp(install, "true") == 0 || list_has(install, r->language));
    if (!first || !r->warm)
        return;
    r->preload = (char *)label_or_empty(labels, "sandbox.preload", RUNNER_PRELOAD_MAX);
    r->load = label_is(labels, "sandbox.load", "held");
}

static void own(struct engine_runner *r)
{
    r->language = mem_strdup(r->language);
    r->image = mem_strdup(r->image);
    r->image_id = mem_strdup(r->image_id);
    r->version = mem_strdup(r->version);
    r->libraries = mem_strdup(r->libraries);
    r->preload = mem_strdup(r->preload);
}

/* Puts a copy of r into the list, in the place of an older image of the same language. */
static void keep(struct engine_runners *list, const struct engine_runner *r)
{
    struct engine_runner *place = NULL;

    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->items[i].language, r->language) == 0)
            place = &list->items[i];
    }
    if (place && place->created >= r->created)
        return;
    if (!place && list->n == RUNNERS_MAX)
        return;
    if (place)
        engine_runner_clear(place);
    else
        place = &list->items[list->n++];
    *place = *r;
    own(place);
}

/* Keeps the image's languages; of several only for an image that is told which one a run is in. */
static void keep_languages(struct engine_runners *list, const json_t *labels,
                           const struct engine_runner *image)
{
    const char *at = label_or_empty(labels, "sandbox.language", RUNNER_LANGUAGES_MAX), *word;
    size_t len;

    if (strchr(at, ' ') && image->protocol < 3)
        return;
    for (bool first = true; (len = next_word(&at, &word)) > 0; first = false) {
        AUTO_FREE char *language = mem_strndup(word, len);
        struct engine_runner r = *image;

        if (len > LANGUAGE_MAX ||
            strspn(language, "abcdefghijklmnopqrstuvwxyz0123456789+#._-") != len)
            continue;
        r.language = language;
        read_language(labels, first, &r);
        keep(list, &r);
    }
}

static int by_language(const void *a, const void *b)
{
    const struct engine_runner *x = a, *y = b;

    return strcmp(x->language, y->language);
}

int runners_parse(const char *reply, size_t len, const char *allow, struct engine_runners *out,
                  struct err *e)
{
    json_auto_t *images = json_parse(reply, len, JSON_MAX_DEPTH, e);
    struct engine_runner found;
    size_t i;
    const json_t *image;

    if (!images)
        return err_wrap(e, "the container engine's list of images");
    if (!json_is_array(images))
        return err_set(e, ERR_PROTOCOL, "the container engine's list of images is no list");
    *out = (struct engine_runners){.items = mem_array(RUNNERS_MAX, sizeof *out->items)};
    json_array_foreach(images, i, image)
    {
        if (read_image(image, allow, &found))
            keep_languages(out, json_object_get(image, "Labels"), &found);
    }
    qsort(out->items, out->n, sizeof *out->items, by_language);
    return 0;
}

int docker_runners(struct engine *engine, const char *allow, struct engine_runners *out,
                   struct err *e)
{
    /* filters={"label":["sandbox.runner=true"]} */
    static const char path[] =
        "/images/json?filters=%7B%22label%22%3A%5B%22sandbox.runner%3Dtrue%22%5D%7D";
    struct docker *d = (struct docker *)engine;
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_LARGE_REPLY);
    int status = docker_http_call(d->http, "GET", path, NULL, DOCKER_QUESTION_MS, &reply, e);

    if (docker_http_check(status, reply.data, reply.len, e) < 0)
        return -1;
    return runners_parse(buf_str(&reply), reply.len, allow, out, e);
}

/* ---- containers ---- */

#define MEMORY_MS 1000 /* the status waits for it */

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

static json_t *list(struct docker *d, const char *instance, int timeout_ms, struct err *e)
{
    AUTO_BUF struct buf path = BUF_INIT(16384);
    AUTO_BUF struct buf reply = BUF_INIT(DOCKER_LARGE_REPLY);
    json_t *containers;
    int status;

    if (list_path(instance, &path, e) < 0)
        return NULL;
    status = docker_http_call(d->http, "GET", buf_str(&path), NULL, timeout_ms, &reply, e);
    if (docker_http_check(status, reply.data, reply.len, e) < 0)
        return NULL;
    containers = json_parse(buf_str(&reply), reply.len, JSON_MAX_DEPTH, e);
    if (!containers)
        err_wrap(e, "the container engine's list of containers");
    return containers;
}

struct own_container {
    const char *id, *run_id; /* borrowed from the list */
    int64_t deadline;
};

/* The next of this instance's in the list, from *at on; false: there is none. */
static bool next_own(const json_t *containers, const char *instance, size_t *at,
                     struct own_container *out)
{
    for (const json_t *item; (item = json_array_get(containers, *at));) {
        ++*at;
        out->id = json_get_string(item, "Id");
        if (container_id_ok(out->id) && reap_read(item, instance, &out->run_id, &out->deadline))
            return true;
    }
    return false;
}

int docker_reap(struct engine *engine, const char *instance,
                bool (*orphan)(void *ctx, const char *run_id, int64_t deadline_unix), void *ctx,
                struct err *e)
{
    struct docker *d = (struct docker *)engine;
    json_auto_t *containers = list(d, instance, DOCKER_QUESTION_MS, e);
    int removed = 0, failed = 0;
    size_t at = 0;

    if (!containers)
        return -1;
    for (struct own_container own; next_own(containers, instance, &at, &own);) {
        if (!orphan(ctx, own.run_id, own.deadline))
            continue;
        /* One that cannot be removed must not keep the others alive. */
        int gone = docker_remove(d, own.id, DOCKER_PATIENCE_MS, e);
        failed += gone < 0;
        removed += gone > 0;
    }
    return failed ? -1 : removed;
}

int docker_memory(struct engine *engine, const char *instance,
                  void (*tell)(void *ctx, const char *run_id, uint64_t bytes), void *ctx,
                  struct err *e)
{
    json_auto_t *containers = list((struct docker *)engine, instance, MEMORY_MS, e);
    size_t at = 0;
    uint64_t bytes;

    if (!containers)
        return -1;
    for (struct own_container own; next_own(containers, instance, &at, &own);) {
        AUTO_FD int fd = cgroup_open(CGROUP_ROOT, CGROUP_MEMORY, own.id);
        if (fd >= 0 && cgroup_read(fd, CGROUP_MEMORY, &bytes))
            tell(ctx, own.run_id, bytes);
    }
    return 0;
}
