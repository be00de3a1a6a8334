/* What can be told of a program from its code, and the lists of words of the command line. */
#include "runners/common/entry.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* The code, to be unmapped; NULL: there is none. */
static char *code_map(const char *script, size_t *len)
{
    struct stat st;
    void *code = MAP_FAILED;
    int fd = open(script, O_RDONLY | O_CLOEXEC);

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0) {
        *len = (size_t)st.st_size;
        code = mmap(NULL, *len, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (fd >= 0)
        close(fd);
    return code == MAP_FAILED ? NULL : code;
}

bool code_has(const char *script, const char *words)
{
    size_t code_len = 0;
    char *code = code_map(script, &code_len);
    bool found = false;

    if (!code)
        return false;
    for (size_t len; !found && *(words += strspn(words, LIST_BREAKS)); words += len) {
        len = strcspn(words, LIST_BREAKS);
        found = memmem(code, code_len, words, len) != NULL;
    }
    munmap(code, code_len);
    return found;
}

bool code_needs(const char *script, const char *name)
{
    char first[NAME_MAX + 1];
    size_t len = strcspn(name, ".");

    if (len > NAME_MAX)
        return true;
    memcpy(first, name, len);
    first[len] = '\0';
    return code_has(script, first);
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

bool code_is_plain(const char *script, const char *modules)
{
    static const char hidden[] = "__import__";
    size_t len = 0;
    char *code = code_map(script, &len);
    bool plain = code && !memmem(code, len, hidden, strlen(hidden));

    for (const char *at = code, *end = code + len; plain && at < end;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));

        plain = line_is_plain(at, line_end ? line_end : end, modules);
        at = line_end ? line_end + 1 : end;
    }
    if (code)
        munmap(code, len);
    return plain;
}
