#include "config.h"

#include "common/tools/runs/imports.h"

#include "common/base/auto.h"

#include <ctype.h>
#include <string.h>

/* A part of the program. */
struct span {
    const char *at, *end;
};

static void skip_blanks(struct span *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t'))
        s->at++;
}

/* Skips the word if the span begins with it. */
static bool skip_word(struct span *s, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
        return false;
    s->at += len;
    return true;
}

static bool names_have(const json_t *names, const char *name, size_t len)
{
    json_t *one;

    for (size_t i = 0; (one = json_array_get(names, i)); i++) {
        if (json_string_length(one) == len && memcmp(json_string_value(one), name, len) == 0)
            return true;
    }
    return false;
}

static void names_add(json_t *names, const char *name, size_t len)
{
    if (len > 0 && len <= WANTS_NAME_MAX && json_array_size(names) < WANTS_MAX &&
        !names_have(names, name, len))
        json_array_append_new(names, json_stringn(name, len));
}

/* ---- Python: "import a.b as c, d" and "from a.b import c" at the beginning of a statement ---- */

/* The first part of a dotted name. */
static void take_module(struct span *s, json_t *names)
{
    const char *begin;

    skip_blanks(s);
    begin = s->at;
    while (s->at < s->end && (isalnum((unsigned char)*s->at) || *s->at == '_'))
        s->at++;
    names_add(names, begin, (size_t)(s->at - begin));
}

static void python_statement(struct span line, json_t *names)
{
    skip_blanks(&line);
    if (skip_word(&line, "from ")) {
        take_module(&line, names);
        return;
    }
    if (!skip_word(&line, "import "))
        return;
    while (line.at && line.at < line.end) {
        take_module(&line, names);
        line.at = memchr(line.at, ',', (size_t)(line.end - line.at));
        if (line.at)
            line.at++;
    }
}

static void python_line(struct span line, json_t *names)
{
    for (const char *end; line.at; line.at = end ? end + 1 : NULL) {
        end = memchr(line.at, ';', (size_t)(line.end - line.at));
        python_statement((struct span){line.at, end ? end : line.end}, names);
    }
}

/* ---- TypeScript: quoted names behind from, import and require ---- */

/* The length of a package's name without the path inside it; 0: a file of the program itself. */
static size_t package_len(const char *name, size_t len)
{
    const char *slash = memchr(name, '/', len);

    if (len == 0 || *name == '.' || *name == '/')
        return 0;
    if (slash && *name == '@')
        slash = memchr(slash + 1, '/', len - (size_t)(slash + 1 - name));
    return slash ? (size_t)(slash - name) : len;
}

/* Takes the quoted text at the beginning of the span, if there is one. */
static void take_quoted(struct span s, json_t *names)
{
    const char *end;

    while (s.at < s.end && (*s.at == ' ' || *s.at == '('))
        s.at++;
    if (s.at == s.end || (*s.at != '"' && *s.at != '\''))
        return;
    end = memchr(s.at + 1, *s.at, (size_t)(s.end - s.at - 1));
    if (end)
        names_add(names, s.at + 1, package_len(s.at + 1, (size_t)(end - s.at - 1)));
}

static void typescript_line(struct span line, json_t *names)
{
    static const char *const words[] = {"from", "import", "require"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t len = strlen(words[i]);
        const char *found = memmem(line.at, (size_t)(line.end - line.at), words[i], len);

        if (found)
            take_quoted((struct span){found + len, line.end}, names);
    }
}

/* ---- both ---- */

static const struct {
    const char *language;
    void (*line)(struct span line, json_t *names);
} scanners[] = {{"python", python_line}, {"typescript", typescript_line}};

json_t *imports_of(const char *language, struct run_text code)
{
    const char *end = code.data + code.len, *next;
    size_t i = 0;

    while (i < ARRAY_LEN(scanners) && strcmp(scanners[i].language, language) != 0)
        i++;
    if (i == ARRAY_LEN(scanners))
        return NULL;
    json_t *names = json_array();
    for (const char *at = code.data; at < end; at = next + 1) {
        next = memchr(at, '\n', (size_t)(end - at));
        if (!next)
            next = end;
        scanners[i].line((struct span){at, next}, names);
    }
    return names;
}
