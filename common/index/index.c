#include "config.h"

#include "common/index/index.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/base/parse.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LETTERS      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS       "0123456789"
#define NPM_NAME_MAX 214
#define HTTPS_PORT   443
#define SETTING      "SANDBOX_INDEXES"

/* ---- packages: an installer accepts far more than these checks: options, files, URLs ---- */

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

static int index_check_python(const char *package, struct err *e)
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
    if (!at || at - package > NPM_NAME_MAX || memmem(package, (size_t)(at - package), "..", 2))
        return NULL;
    return at;
}

/* A version, a range of them, or a tag: nothing with a colon or a slash, so no other source. */
static bool is_npm_version(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && (is_alnum(*text) || strchr("^~<>=*", *text)) &&
           strspn(text, LETTERS DIGITS ".^~<>=*|+_ -") == len && !strstr(text, "..") &&
           strpbrk(text, LETTERS DIGITS "*");
}

static int index_check_npm(const char *package, struct err *e)
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

/* ---- a host ---- */

/* Letters, digits, dots and hyphens, into lower case. */
static bool host_copy_name(const char *text, size_t len, char *out)
{
    if (len == 0 || len > INDEX_HOST_NAME || text[0] == '-' || text[0] == '.')
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'))
            return false;
        out[i] = c;
    }
    out[len] = '\0';
    return true;
}

static bool host_copy_v6(const char *text, size_t len, char *out)
{
    struct in6_addr address;

    if (len == 0 || len >= INET6_ADDRSTRLEN)
        return false;
    memcpy(out, text, len);
    out[len] = '\0';
    return inet_pton(AF_INET6, out, &address) == 1 &&
           inet_ntop(AF_INET6, &address, out, INDEX_HOST_NAME);
}

static bool parse_port(const char *text, size_t len, uint16_t *out)
{
    char digits[6];
    uint64_t port;

    if (len == 0 || len >= sizeof digits)
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    if (parse_u64(digits, 1, UINT16_MAX, &port) < 0)
        return false;
    *out = (uint16_t)port;
    return true;
}

bool index_host_parse(const char *text, size_t len, uint16_t default_port, struct index_host *out)
{
    const char *end = text + len;
    const char *close = len > 0 && *text == '[' ? memchr(text, ']', len) : NULL;
    const char *rest = close ? close + 1 : memchr(text, ':', len);

    if (!rest)
        rest = end;
    if (close ? !host_copy_v6(text + 1, (size_t)(close - text) - 1, out->name)
              : !host_copy_name(text, (size_t)(rest - text), out->name))
        return false;
    out->port = default_port;
    if (rest == end)
        return default_port != 0;
    return *rest == ':' && parse_port(rest + 1, (size_t)(end - rest) - 1, &out->port);
}

/* ---- the setting ---- */

static int add_host(struct index_source *s, const char *text, size_t len, struct err *e)
{
    if (s->n_hosts == INDEX_HOSTS_MAX)
        return err_set(e, ERR_INVALID, SETTING ": more than %d hosts for %s", INDEX_HOSTS_MAX,
                       s->language);
    if (!index_host_parse(text, len, HTTPS_PORT, &s->hosts[s->n_hosts]))
        return err_set(e, ERR_INVALID, SETTING ": \"%.*s\" is no host or host:port", (int)len,
                       text);
    s->n_hosts++;
    return 0;
}

/* The URL and its host. */
static int take_url(struct index_source *s, const char *url, struct err *e)
{
    static const char scheme[] = "https://";
    const char *host = url + sizeof scheme - 1;

    if (strncmp(url, scheme, sizeof scheme - 1) != 0)
        return err_set(e, ERR_INVALID, SETTING ": the index of %s must begin with https://",
                       s->language);
    if (strpbrk(url, "@?#\"'\\<> \t") || strlen(url) > INDEX_URL_MAX)
        return err_set(e, ERR_INVALID,
                       SETTING ": the URL for %s must be plain: no user, query, quotes or blanks",
                       s->language);
    snprintf(s->url, sizeof s->url, "%s", url);
    return add_host(s, host, strcspn(host, "/"), e);
}

/* One "language=URL+host+host"; the words are cut in place. */
static int add_source(struct index_settings *s, char *word, struct err *e)
{
    struct index_source *source = &s->items[s->n];
    char *rest = strchr(word, '=');

    if (!rest)
        return err_set(e, ERR_INVALID, SETTING ": \"%.40s\" is not language=https://…", word);
    *rest++ = '\0';
    if (!index_ecosystem_of(word))
        return err_set(e, ERR_INVALID, SETTING ": packages of \"%.40s\" cannot be installed", word);
    if (index_source_of(s, word))
        return err_set(e, ERR_INVALID, SETTING " names %s twice", word);
    *source = (struct index_source){0};
    snprintf(source->language, sizeof source->language, "%s", word);
    if (take_url(source, strsep(&rest, "+"), e) < 0)
        return -1;
    while (rest) {
        const char *host = strsep(&rest, "+");
        if (add_host(source, host, strlen(host), e) < 0)
            return -1;
    }
    s->n++;
    return 0;
}

int index_settings_parse(const char *text, struct index_settings *out, struct err *e)
{
    AUTO_FREE char *copy = mem_strdup(text);
    struct index_settings s = {.private_ok = out->private_ok};

    for (char *rest = *copy ? copy : NULL; rest;) {
        char *word = strsep(&rest, ",");
        word += strspn(word, " ");
        if (s.n == INDEX_LANGUAGES_MAX)
            return err_set(e, ERR_INVALID, SETTING ": more than %d languages", INDEX_LANGUAGES_MAX);
        if (add_source(&s, word, e) < 0)
            return -1;
    }
    *out = s;
    return 0;
}

const struct index_source *index_source_of(const struct index_settings *s, const char *language)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->items[i].language, language) == 0)
            return &s->items[i];
    return NULL;
}

bool index_source_allows(const struct index_source *s, const struct index_host *host)
{
    for (size_t i = 0; i < s->n_hosts; i++)
        if (s->hosts[i].port == host->port && strcmp(s->hosts[i].name, host->name) == 0)
            return true;
    return false;
}
