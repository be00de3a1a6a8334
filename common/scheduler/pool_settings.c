#include "config.h"

#include "common/scheduler/pool_settings.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/base/parse.h"

#include <stdbool.h>
#include <string.h>

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789+#._-"

/* "auto". */
#define AUTO_BYTES (90ull * 1024 * 1024) /* of a container with its libraries */
#define AUTO_SHARE 2                     /* of the memory: one part in so many */
#define AUTO_MIN   2
#define AUTO_MAX   24

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

/* Needs memory_bytes. They are one image's, as a rule, where the numbers add up. */
static void set_automatic(struct pool_settings *s)
{
    const uint64_t room = s->memory_bytes / AUTO_SHARE / AUTO_BYTES;
    const size_t n = room < AUTO_MIN ? AUTO_MIN : room > AUTO_MAX ? AUTO_MAX : (size_t)room;

    s->items[0] = (struct pool_language){.language = "python", .n = n > 3 ? n - 2 : 1};
    s->items[1] = (struct pool_language){.language = "bash", .n = 1};
    s->items[2] = (struct pool_language){.language = "typescript", .n = 1};
    s->n = n > 2 ? 3 : 2;
    s->automatic = true;
}

static int parse_warm(const char *text, struct pool_settings *s, struct err *e)
{
    AUTO_FREE char *copy = mem_strdup(text);
    char *next = trim(copy);

    s->n = 0;
    s->automatic = false;
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
