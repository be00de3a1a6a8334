#include "config.h"

#include "fcgi/oauth/server/page.h"

#include "common/base/auto.h"
#include "common/base/b64.h"
#include "common/base/crypto.h"
#include "common/base/embed.h"
#include "common/tools/tools.h"

#include <string.h>

EMBED(oauth_consent_html, OAUTH_SOURCES "/consent.html");
EMBED(oauth_consent_css, OAUTH_SOURCES "/consent.css");
extern const char oauth_consent_html[], oauth_consent_css[];

#define PLACE_MAX 32 /* bytes of a name in {{ }} */

/* What a scope allows, for people. */
static const struct {
    const char *scope, *text;
} scope_words[] = {
    {"run", "run programs in sandboxes, and see and end its tenant's runs"},
    {"files", "read, change and delete the files of its tenant"},
    {"network", "give programs a network, as far as this server allows one"},
    {"admin", "list all runs of its tenant, and delete whole conversations"},
};

void html_add(struct buf *out, const char *text)
{
    static const struct {
        char c;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};

    for (; *text; text++) {
        size_t i = 0;
        while (i < ARRAY_LEN(entities) && entities[i].c != *text)
            i++;
        if (i < ARRAY_LEN(entities))
            buf_add_str(out, entities[i].entity);
        else
            buf_add_char(out, *text);
    }
}

static void add_head(const char *title, const char *refresh, struct buf *out)
{
    buf_add_str(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    if (refresh) {
        buf_add_str(out, "<meta http-equiv=\"refresh\" content=\"0;url=");
        html_add(out, refresh);
        buf_add_str(out, "\">\n");
    }
    buf_add_str(out, "<title>");
    html_add(out, title);
    buf_add_str(out, " – sandcgi</title>\n<style>");
    buf_add_str(out, oauth_consent_css);
    buf_add_str(out, "</style>\n</head>\n<body>\n"
                     "<header><svg class=\"mark\" viewBox=\"0 0 24 24\" aria-hidden=\"true\">"
                     "<rect x=\"2\" y=\"2\" width=\"20\" height=\"20\" rx=\"6\"/>"
                     "<path d=\"M7 8.5 11 12l-4 3.5M12.5 16H17\"/></svg>sandcgi</header>\n"
                     "<main>\n");
}

static void add_end(struct buf *out)
{
    buf_add_str(out, "</main>\n</body>\n</html>\n");
}

static void add_scopes(unsigned scopes, struct buf *out)
{
    char names[SCOPE_TEXT_MAX], *rest = names, *name;

    scopes_format(scopes, names);
    while ((name = strsep(&rest, ","))) {
        const char *words = name;
        for (size_t i = 0; i < ARRAY_LEN(scope_words); i++)
            if (strcmp(scope_words[i].scope, name) == 0)
                words = scope_words[i].text;
        buf_add_str(out, "<li>");
        html_add(out, words);
        buf_add_str(out, "</li>\n");
    }
}

static void add_identity(const struct consent *c, struct buf *out)
{
    if (c->document) {
        buf_add_str(out, "described at ");
        html_add(out, c->document);
    } else
        buf_add_str(out, "not verified: it has chosen its name itself");
}

static void add_problem(const struct consent *c, struct buf *out)
{
    if (!c->problem)
        return;
    buf_add_str(out, "<p class=\"problem\" role=\"alert\">");
    html_add(out, c->problem);
    buf_add_str(out, "</p>\n");
}

/* One place of the template. */
static void add_place(const struct consent *c, const char *name, struct buf *out)
{
    const struct {
        const char *name, *text;
    } texts[] = {{"client", c->client}, {"redirect", c->redirect}, {"resource", c->resource},
                 {"tenant", c->tenant}, {"request", c->request},   {"made", c->made},
                 {"proof", c->proof}};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (strcmp(texts[i].name, name) == 0)
            html_add(out, texts[i].text);
    if (strcmp(name, "scopes") == 0)
        add_scopes(c->scopes, out);
    else if (strcmp(name, "identity") == 0)
        add_identity(c, out);
    else if (strcmp(name, "problem") == 0)
        add_problem(c, out);
}

void page_consent(const struct consent *c, struct buf *out)
{
    char name[PLACE_MAX];

    add_head("Allow access?", NULL, out);
    for (const char *s = oauth_consent_html; *s;) {
        const char *place = strstr(s, "{{"), *end = place ? strstr(place, "}}") : NULL;
        if (!end) {
            buf_add_str(out, s);
            break;
        }
        buf_add(out, s, (size_t)(place - s));
        snprintf(name, sizeof name, "%.*s", (int)(end - place - 2), place + 2);
        add_place(c, name, out);
        s = end + 2;
    }
    add_end(out);
}

void page_note(const char *title, const char *text, const char *link, const char *link_text,
               bool go_on, struct buf *out)
{
    add_head(title, go_on ? link : NULL, out);
    buf_add_str(out, "<h1>");
    html_add(out, title);
    buf_add_str(out, "</h1>\n<p>");
    html_add(out, text);
    buf_add_str(out, "</p>\n");
    if (link) {
        buf_add_str(out, "<p class=\"acts\"><a class=\"button\" href=\"");
        html_add(out, link);
        buf_add_str(out, "\">");
        html_add(out, link_text);
        buf_add_str(out, "</a></p>\n");
    }
    add_end(out);
}

/*
 * The form's answer is a page that goes on, not a redirect: browsers hold all redirects of a form
 * to form-action, also those of the client's own site, which nobody here knows. The referrer stays
 * within this server, since a browser that sends none says "Origin: null" with a form.
 */
void page_headers(struct buf *out)
{
    AUTO_BUF struct buf digest = BUF_INIT(B64_ENCODED_LEN(CRYPTO_SHA256_LEN));
    uint8_t hash[CRYPTO_SHA256_LEN];
    struct err e = ERR_INIT;

    if (crypto_sha256(oauth_consent_css, strlen(oauth_consent_css), hash, &e) == 0)
        b64_encode(hash, sizeof hash, &digest);
    buf_addf(out,
             "Content-Security-Policy: default-src 'none'; style-src 'sha256-%s'; "
             "form-action 'self'; base-uri 'none'; frame-ancestors 'none'\r\n"
             "X-Frame-Options: DENY\r\n"
             "X-Content-Type-Options: nosniff\r\n"
             "Referrer-Policy: same-origin\r\n",
             buf_str(&digest));
}
