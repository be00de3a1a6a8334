/* What a package may look like. An installer accepts far more than this: options, files, URLs. */
#include "config.h"

#include "common/index/ecosystem.h"

#include "common/base/auto.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define LETTERS      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS       "0123456789"
#define NPM_NAME_MAX 214

static bool is_alnum(char c)
{
    return c != '\0' && strchr(LETTERS DIGITS, c);
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " ");
}

/* Both installers treat a name with such an ending as a file. */
static bool ends_like_file(const char *text)
{
    static const char *const endings[] = {".whl", ".zip", ".tar", ".gz", ".tgz", ".bz2",
                                          ".tbz", ".xz",  ".txz", ".lz", ".tlz", ".lzma"};
    size_t len = strlen(text);

    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        size_t n = strlen(endings[i]);
        if (len >= n && strcasecmp(text + len - n, endings[i]) == 0)
            return true;
    }
    return false;
}

/* ---- PyPI ---- */

/* Letters, digits and ._- between letters or digits; NULL when there is none. */
static const char *skip_python_name(const char *at)
{
    size_t len = strspn(at, LETTERS DIGITS "._-");

    return len > 0 && is_alnum(at[0]) && is_alnum(at[len - 1]) ? at + len : NULL;
}

/* "[a,b]"; NULL when it is none. */
static const char *skip_extras(const char *at)
{
    do {
        at = skip_python_name(skip_blanks(at + 1));
        if (!at)
            return NULL;
        at = skip_blanks(at);
    } while (*at == ',');
    return *at == ']' ? skip_blanks(at + 1) : NULL;
}

/* ">=1.2"; NULL when it is none. */
static const char *skip_specifier(const char *at)
{
    static const char *const operators[] = {"==", "!=", "<=", ">=", "~=", "<", ">"};
    size_t i = 0;

    at = skip_blanks(at);
    while (i < ARRAY_LEN(operators) && strncmp(at, operators[i], strlen(operators[i])) != 0)
        i++;
    if (i == ARRAY_LEN(operators))
        return NULL;
    at = skip_blanks(at + strlen(operators[i]));
    size_t len = strspn(at, LETTERS DIGITS ".!+_*-");
    return len > 0 && is_alnum(*at) ? skip_blanks(at + len) : NULL;
}

int index_check_python(const char *package, struct err *e)
{
    const char *at = skip_python_name(package);

    if (!at)
        return err_set(e, ERR_INVALID, "a name is letters and digits, with . _ - between them");
    if (ends_like_file(package))
        return err_set(e, ERR_INVALID, "it looks like a file");
    at = skip_blanks(at);
    if (*at == '[' && !(at = skip_extras(at)))
        return err_set(e, ERR_INVALID, "extras are names in [ ], with commas between them");
    while (*at) {
        at = skip_specifier(at);
        if (!at || (*at && *at != ','))
            return err_set(e, ERR_INVALID,
                           "after the name only versions may stand, as in ==1.2 or >=1.2,<2");
        if (*at == ',' && !*++at)
            return err_set(e, ERR_INVALID, "it ends in a comma");
    }
    return 0;
}

/* ---- npm ---- */

/* One part of a name; NULL when there is none. */
static const char *skip_npm_part(const char *at)
{
    size_t len = strspn(at, LETTERS DIGITS "._~-");

    return len > 0 && (is_alnum(*at) || *at == '~') ? at + len : NULL;
}

static const char *skip_npm_name(const char *package)
{
    const char *at = package;

    if (*at == '@') {
        at = skip_npm_part(at + 1);
        if (!at || *at++ != '/')
            return NULL;
    }
    at = skip_npm_part(at);
    return at && at - package <= NPM_NAME_MAX ? at : NULL;
}

/* A version, a range of them, or a tag: nothing with a colon or a slash, so no other source. */
static bool is_npm_version(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && (is_alnum(*text) || strchr("^~<>=*", *text)) &&
           strspn(text, LETTERS DIGITS ".^~<>=*|+_ -") == len && !strstr(text, "..");
}

int index_check_npm(const char *package, struct err *e)
{
    const char *at = skip_npm_name(package);

    if (!at)
        return err_set(e, ERR_INVALID, "a name is letters and digits, with . _ - between them");
    if (ends_like_file(package))
        return err_set(e, ERR_INVALID, "it looks like a file");
    if (*at == '\0')
        return 0;
    if (*at != '@' || !is_npm_version(at + 1))
        return err_set(e, ERR_INVALID,
                       "after the name only @ and a version, range or tag may stand");
    return 0;
}

/* ---- the ecosystems ---- */

static const struct index_ecosystem rows[] = {
    {"python", "name, name[extra] or name>=1.2,<2", index_check_python},
    {"typescript", "name, @scope/name or name@^1.2", index_check_npm},
};

const struct index_ecosystem *index_ecosystems(size_t *n)
{
    *n = ARRAY_LEN(rows);
    return rows;
}

const struct index_ecosystem *index_ecosystem_of(const char *language)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].language, language) == 0)
            return &rows[i];
    return NULL;
}

int index_check_package(const struct index_ecosystem *eco, const char *package, struct err *e)
{
    struct err why = ERR_INIT;
    size_t len = strlen(package);

    if (len > INDEX_PACKAGE_MAX)
        return err_set(e, ERR_LIMIT, "packages: one is %zu bytes; the limit is %d", len,
                       INDEX_PACKAGE_MAX);
    if (eco->check(package, &why) == 0)
        return 0;
    return err_set(e, ERR_INVALID, "packages: \"%.80s\" is no package of %s's index (%s): %s",
                   package, eco->language, eco->grammar, why.text);
}
