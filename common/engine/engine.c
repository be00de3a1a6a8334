#include "config.h"

#include "common/engine/engine.h"

#include <stdlib.h>
#include <string.h>

void engine_runner_clear(struct engine_runner *r)
{
    free(r->language);
    free(r->image);
    free(r->image_id);
    free(r->version);
    free(r->libraries);
    free(r->preload);
    *r = (struct engine_runner){0};
}

void engine_runners_clear(struct engine_runners *r)
{
    for (size_t i = 0; i < r->n; i++)
        engine_runner_clear(&r->items[i]);
    free(r->items);
    *r = (struct engine_runners){0};
}

const struct engine_runner *engine_runners_find(const struct engine_runners *r,
                                                const char *language)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->items[i].language, language) == 0)
            return &r->items[i];
    return NULL;
}

const char *engine_runner_language(const struct engine_runner *runner)
{
    return runner->protocol == 3 ? runner->language : NULL;
}

/* image without the registries that engines add by default. */
static const char *skip_registry(const char *image)
{
    static const char *const defaults[] = {"localhost/", "docker.io/library/", "docker.io/"};

    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        size_t len = strlen(defaults[i]);

        if (strncmp(image, defaults[i], len) == 0)
            return image + len;
    }
    return image;
}

/* Length of the repository part: up to the digest, or the tag (a colon after the last slash; a port
 * is before one). */
static size_t repository_len(const char *image)
{
    size_t len = strcspn(image, "@");
    const char *end = image + len;

    for (const char *p = end; p > image && p[-1] != '/'; p--) {
        if (p[-1] == ':')
            end = p - 1;
    }
    return (size_t)(end - image);
}

static bool pattern_matches(const char *pattern, size_t pattern_len, const char *name, size_t len)
{
    if (pattern_len > 0 && pattern[pattern_len - 1] == '*')
        return len >= pattern_len - 1 && memcmp(pattern, name, pattern_len - 1) == 0;
    return pattern_len == len && memcmp(pattern, name, len) == 0;
}

bool engine_image_allowed(const char *allow, const char *image)
{
    const char *name = skip_registry(image);
    size_t len = repository_len(name);

    while (len > 0 && *allow) {
        size_t n = strcspn(allow, ",");
        const char *from = allow, *to = allow + n;

        while (from < to && *from == ' ')
            from++;
        while (to > from && to[-1] == ' ')
            to--;
        if (from < to && pattern_matches(from, (size_t)(to - from), name, len))
            return true;
        allow += n;
        allow += *allow == ',';
    }
    return false;
}
