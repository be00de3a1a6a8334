#include "config.h"

#include "fcgi/oauth/server/uri.h"

#include "common/base/auto.h"
#include "common/base/mem.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define ALNUM        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define SCHEME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789+.-"
#define HOST_CHARS   ALNUM ".-_"
#define URI_CHARS    ALNUM "-._~:/?#[]@!$&'()*+,;=%" /* RFC 3986 */
#define MCP          "/mcp"

struct part {
    const char *text;
    size_t len;
};

/* scheme "://" host [":" port] rest, where rest is path and query */
struct uri {
    struct part scheme, host, port;
    const char *rest;
};

static bool part_is(struct part p, const char *text)
{
    return p.len == strlen(text) && memcmp(p.text, text, p.len) == 0;
}

/* Whatever it accepts, a browser reads the same way: no user, no fragment, no backslash, no blank.
 */
static bool uri_split(const char *text, struct uri *out)
{
    size_t len = strlen(text), scheme = strspn(text, SCHEME_CHARS);

    *out = (struct uri){.scheme = {text, scheme}};
    if (len > URI_MAX || strspn(text, URI_CHARS) != len || strchr(text, '#') || scheme == 0 ||
        !islower((unsigned char)*text) || strncmp(text + scheme, "://", 3) != 0)
        return false;
    const char *at = text + scheme + 3;
    size_t authority = strcspn(at, "/?");
    if (memchr(at, '@', authority))
        return false;
    out->host.text = at;
    out->host.len = *at == '[' ? strspn(at + 1, "0123456789abcdefABCDEF:.") + 2
                               : strspn(at, HOST_CHARS);
    if (out->host.len > authority || (*at == '[' && at[out->host.len - 1] != ']'))
        return false;
    at += out->host.len;
    if (*at == ':') {
        out->port = (struct part){at + 1, strspn(at + 1, "0123456789")};
        if (out->port.len == 0 || out->port.len > 5)
            return false;
        at += 1 + out->port.len;
    }
    out->rest = at;
    return *at == '\0' || *at == '/' || *at == '?';
}

static bool is_loopback(const struct uri *u)
{
    static const char *const hosts[] = {"127.0.0.1", "[::1]", "localhost"};

    if (!part_is(u->scheme, "http"))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
        if (part_is(u->host, hosts[i]))
            return true;
    return false;
}

/* Schemes that browsers execute, show or connect to by themselves, those of the system's own
 * programs, which links have made do harm, and those of mail and telephone. */
static bool is_refused(struct part scheme)
{
    static const char refused[] =
        " about afp apt blob callto chrome chrome-extension data edge facetime file filesystem ftp "
        "gopher hcp help http intent itms-services jar javascript jnlp jnlps ldap ldaps mailto "
        "mhtml mk "
        "moz-extension nfs res resource rlogin search search-ms sftp shell sip sms smb ssh tel "
        "telnet "
        "vbscript view-source webcal ws wss ";
    AUTO_FREE char *word = mem_printf(" %.*s ", (int)scheme.len, scheme.text);

    return strstr(refused, word) || strncmp(word, " ms-", 4) == 0;
}

int redirect_check(const char *uri, struct err *e)
{
    struct uri u;

    if (!uri_split(uri, &u))
        return err_set(e, ERR_INVALID,
                       "a redirect URI must be a plain URI of at most %d bytes, with :// and "
                       "without a fragment and a user name",
                       URI_MAX);
    if (part_is(u.scheme, "https"))
        return u.host.len > 0 ? 0 : err_set(e, ERR_INVALID, "a redirect URI has no host");
    if (is_loopback(&u))
        return 0;
    if (is_refused(u.scheme))
        return err_set(e, ERR_INVALID,
                       "a redirect URI must begin with https://, the scheme of a native program, "
                       "or http:// and 127.0.0.1, [::1] or localhost");
    return 0;
}

bool redirect_matches(const char *registered, const char *asked)
{
    struct uri r, a;

    if (strcmp(registered, asked) == 0)
        return true;
    return uri_split(registered, &r) && uri_split(asked, &a) && is_loopback(&r) &&
           is_loopback(&a) && r.host.len == a.host.len &&
           memcmp(r.host.text, a.host.text, r.host.len) == 0 && strcmp(r.rest, a.rest) == 0;
}

void redirect_describe(const char *uri, struct buf *out)
{
    struct uri u;

    if (!uri_split(uri, &u))
        return;
    bool web = part_is(u.scheme, "https"), here = is_loopback(&u);
    if (!web && !here) {
        buf_addf(out, "the program on this computer that opens %.*s:// links", (int)u.scheme.len,
                 u.scheme.text);
        return;
    }
    buf_addf(out, "%s%.*s", here ? "a program on this computer (" : "", (int)u.host.len,
             u.host.text);
    if (u.port.len > 0)
        buf_addf(out, ":%.*s", (int)u.port.len, u.port.text);
    if (here)
        buf_add_char(out, ')');
}

static bool has_dot_segment(const char *path)
{
    for (const char *s = path; *s == '/';) {
        size_t len = strcspn(++s, "/?");
        if ((len == 1 && s[0] == '.') || (len == 2 && s[0] == '.' && s[1] == '.'))
            return true;
        s += len;
    }
    return strstr(path, "%2e") || strstr(path, "%2E");
}

bool client_url_is_valid(const char *uri)
{
    struct uri u;

    return uri_split(uri, &u) && part_is(u.scheme, "https") && u.host.len > 0 && u.port.len == 0 &&
           u.rest[0] == '/' && u.rest[1] != '\0' && u.rest[1] != '?' && !has_dot_segment(u.rest);
}

char *uri_host(const char *uri)
{
    struct uri u;

    return uri_split(uri, &u) ? mem_strndup(u.host.text, u.host.len) : mem_strdup("");
}

/* The length of scheme and authority. */
static size_t origin_len(const char *uri)
{
    const char *host = strstr(uri, "://");

    return host ? (size_t)(host - uri) + 3 + strcspn(host + 3, "/?#") : 0;
}

int resource_read(const char *base, const char *resource, struct buf *out, struct err *e)
{
    size_t origin = origin_len(base), len = strlen(base), end = strlen(resource);

    while (end > 0 && resource[end - 1] == '/')
        end--;
    bool ours = origin > 0 && end >= len && end <= URI_MAX &&
                strncasecmp(resource, base, origin) == 0 &&
                memcmp(resource + origin, base + origin, len - origin) == 0;
    if (ours && end > len) {
        const char *path = resource + len;
        size_t rest = end - len;
        ours = rest >= strlen(MCP) && memcmp(path, MCP, strlen(MCP)) == 0;
        if (ours && rest > strlen(MCP)) {
            path += strlen(MCP);
            rest -= strlen(MCP) + 1;
            ours = *path == '/' && rest > 0 &&
                   strspn(path + 1, "abcdefghijklmnopqrstuvwxyz") == rest;
        }
    }
    if (!ours)
        return err_set(e, ERR_INVALID, "resource is not this server: it is %s" MCP, base);
    buf_add_str(out, base);
    buf_add(out, resource + len, end - len);
    return 0;
}
