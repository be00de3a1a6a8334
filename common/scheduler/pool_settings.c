#include "config.h"

#include "common/scheduler/pool_settings.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/base/parse.h"

#include <stdbool.h>
#include <string.h>

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789+#._-"

/* "auto". */
#define AUTO_SHARE 4 /* of the memory: one part in so many is for new conversations */
#define AUTO_TIMES 8 /* the numbers below, at most */
#define MB         (1024ull * 1024)

static const struct {
    const char *language;
    size_t n;
    uint64_t bytes; /* of one, with its libraries */
} automatic[] = {{"python", 2, 80 * MB}, {"typescript", 1, 24 * MB}, {"bash", 1, 16 * MB}};

bool pool_settings_may_reuse(const struct pool_settings *s, const char *language)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->items[i].language, language) == 0)
            return s->reuse;
    return false;
}

/* One "language=n"; the words are cut in place. */
static int add_language(struct pool_settings *s, char *word, struct err *e)
{
    char *equals = strchr(word, '=');
    uint64_t n;

    if (!equals)
        return err_set(
            e, ERR_INVALID,
            "SANDBOX_WARM must be auto, a list like python=2,bash=1, or empty: \"%.40s\" has "
            "no number",
            word);
    *equals = '\0';
    size_t len = strlen(word);
    if (len == 0 || len > POOL_LANGUAGE_NAME || strspn(word, NAME_LETTERS) != len)
        return err_set(
            e, ERR_INVALID,
            "SANDBOX_WARM must be auto, a list like python=2,bash=1, or empty: \"%.40s\" is "
            "no language's name",
            word);
    if (parse_u64(equals + 1, 0, POOL_PER_LANGUAGE_MAX, &n) < 0)
        return err_set(e, ERR_INVALID,
                       "SANDBOX_WARM: the number of %s must be from 0 to %d, not \"%.40s\"", word,
                       POOL_PER_LANGUAGE_MAX, equals + 1);
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->items[i].language, word) == 0)
            return err_set(e, ERR_INVALID, "SANDBOX_WARM names %s twice", word);
    if (n == 0)
        return 0;
    if (s->n == POOL_LANGUAGES_MAX)
        return err_set(e, ERR_INVALID, "SANDBOX_WARM names more than %d languages",
                       POOL_LANGUAGES_MAX);
    s->items[s->n] = (struct pool_language){.n = n};
    memcpy(s->items[s->n++].language, word, len + 1);
    return 0;
}

static char *trim(char *s)
{
    s += strspn(s, " \t");
    size_t len = strlen(s);
    while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t'))
        s[--len] = '\0';
    return s;
}

/* Needs memory_bytes. */
static void set_automatic(struct pool_settings *s)
{
    uint64_t once = 0;

    for (size_t i = 0; i < ARRAY_LEN(automatic); i++)
        once += automatic[i].n * automatic[i].bytes;
    uint64_t times = s->memory_bytes / AUTO_SHARE / once;
    times = times < 1 ? 1 : times > AUTO_TIMES ? AUTO_TIMES : times;
    for (s->n = 0; s->n < ARRAY_LEN(automatic); s->n++) {
        struct pool_language *item = &s->items[s->n];
        memcpy(item->language, automatic[s->n].language, strlen(automatic[s->n].language) + 1);
        item->n = automatic[s->n].n;
        item->spare = (size_t)(times - 1) * item->n;
    }
}

static int parse_warm(const char *text, struct pool_settings *s, struct err *e)
{
    AUTO_FREE char *copy = mem_strdup(text);
    char *next = trim(copy);

    s->n = 0;
    if (!*next || strcmp(next, "0") == 0)
        return 0;
    if (strcmp(next, "auto") == 0) {
        set_automatic(s);
        return 0;
    }
    while (next)
        if (add_language(s, trim(strsep(&next, ",")), e) < 0)
            return -1;
    return 0;
}

static int parse_memory(const char *text, uint64_t machine_bytes, uint64_t *out, struct err *e)
{
    uint64_t bytes, percent;

    if (parse_share(text, 90, &bytes, &percent) == 0) {
        *out = percent > 0 ? machine_bytes / 100 * percent : bytes;
        return 0;
    }
    return err_set(e, ERR_INVALID,
                   "SANDBOX_WARM_MEMORY must be a size like 512m, or a share of the machine's "
                   "memory from 0%% to 90%%, not \"%.40s\"",
                   text);
}

int pool_settings_parse(const char *warm, const char *memory, uint64_t machine_bytes,
                        struct pool_settings *out, struct err *e)
{
    struct pool_settings s = *out;

    if (parse_memory(memory, machine_bytes, &s.memory_bytes, e) < 0 || parse_warm(warm, &s, e) < 0)
        return -1;
    *out = s;
    return 0;
}
