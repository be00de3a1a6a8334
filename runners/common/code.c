/* What can be told of a program from its code, and the lists of words of the command line. */
#include "runners/common/entry.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

/* Between the words of a list on the command line. */
#define LIST_BREAKS ", "

bool list_has(const char *list, const char *word, size_t len)
{
    const char *at = list ? list + strspn(list, LIST_BREAKS) : "";

    while (*at) {
        size_t n = strcspn(at, LIST_BREAKS);
        bool prefix = at[n - 1] == '*';
        size_t same = prefix ? n - 1 : n;

        if ((prefix ? len >= same : len == same) && memcmp(at, word, same) == 0)
            return true;
        at += n;
        at += strspn(at, LIST_BREAKS);
    }
    return false;
}

bool names_add(char *list, const char *names)
{
    size_t len = strlen(list), n;

    for (; *(names += strspn(names, " ")); names += n) {
        n = strcspn(names, " ");
        if (list_has(list, names, n))
            continue;
        if (len + n + 1 > NAMES_MAX)
            return false;
        if (len > 0)
            list[len++] = ' ';
        memcpy(list + len, names, n);
        list[len += n] = '\0';
    }
    return true;
}

bool names_in(const char *list, const char *names)
{
    size_t n;

    for (; *(names += strspn(names, " ")); names += n) {
        n = strcspn(names, " ");
        if (!list_has(list, names, n))
            return false;
    }
    return true;
}

bool code_has(struct code code, const char *words)
{
    bool found = false;

    for (size_t len; !found && *(words += strspn(words, LIST_BREAKS)); words += len) {
        len = strcspn(words, LIST_BREAKS);
        found = code.len > 0 && memmem(code.text, code.len, words, len) != NULL;
    }
    return found;
}

bool code_needs(struct code code, const char *name)
{
    char first[NAME_MAX + 1];
    size_t len = strcspn(name, ".");

    if (len > NAME_MAX)
        return true;
    memcpy(first, name, len);
    first[len] = '\0';
    return code_has(code, first);
}

/* The first part of the name at *at, which is moved behind all of it and the blanks that follow. */
static size_t name_len(const char **at, const char *end)
{
    const char *name = *at;
    size_t len = 0;

    for (; *at < end && (isalnum((unsigned char)**at) || **at == '_' || **at == '.'); ++*at)
        len += len == (size_t)(*at - name) && **at != '.';
    while (*at < end && (**at == ' ' || **at == '\t' || **at == '\r'))
        ++*at;
    return len;
}

/* Whether the line imports none but modules of the list: "import A, B" or "from A import B". */
static bool line_is_plain(const char *at, const char *end, const char *list)
{
    static const char import[] = "import ", from[] = "from ";
    bool one;

    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    one = (size_t)(end - at) > strlen(from) && memcmp(at, from, strlen(from)) == 0;
    if (!one && ((size_t)(end - at) <= strlen(import) || memcmp(at, import, strlen(import)) != 0))
        return true;
    at += one ? strlen(from) : strlen(import);
    for (;;) {
        const char *name = at;

        if (!list_has(list, name, name_len(&at, end)))
            return false;
        if (one)
            return !memchr(at, ';', (size_t)(end - at));
        if (at == end || *at == '#')
            return true;
        if (*at++ != ',')
            return false;
        while (at < end && *at == ' ')
            at++;
    }
}

bool code_is_plain(struct code code, const char *modules)
{
    static const char hidden[] = "__import__";
    const char *end = code.text + code.len;
    bool plain = code.len > 0 && !memmem(code.text, code.len, hidden, strlen(hidden));

    for (const char *at = code.text; plain && at < end;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));

        plain = line_is_plain(at, line_end ? line_end : end, modules);
        at = line_end ? line_end + 1 : end;
    }
    return plain;
}
