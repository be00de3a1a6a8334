/* Pages of the authorization server: HTML without scripts, framed by nothing, and with the colours
 * of nginx/page. */
#pragma once

#include "common/base/buf.h"

#define PAGE_MAX 65536 /* bytes */

/* Appends text with the characters that HTML knows escaped. */
void html_add(struct buf *out, const char *text);

/* What a page says of the client that asks; all of it is escaped here. */
struct consent {
    const char *client, *redirect, *resource, *tenant;
    const char *document; /* the client's id, if it is the address of its document; or NULL */
    unsigned scopes;      /* of enum scope */
    const char *problem;  /* shown above; or NULL */
    const char *request, *proof; /* of authorize.c */
    const char *made;
};

/* Appends the whole page. */
void page_consent(const struct consent *c, struct buf *out);
/* A page with a heading, a text and perhaps a link. go_on: a browser follows it by itself. */
void page_note(const char *title, const char *text, const char *link, const char *link_text,
               bool go_on, struct buf *out);

/* Appends the headers of such a page, each line with CRLF. */
void page_headers(struct buf *out);
