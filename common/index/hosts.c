#include "config.h"

#include "common/index/hosts.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/index/ecosystem.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define HTTPS_PORT 443
#define SETTING    "SANDBOX_INDEXES"

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
