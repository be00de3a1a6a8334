/* The URIs that a client names: where a browser goes after the consent, who the client is, and what
 * it wants a token for. */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#include <stdbool.h>

#define URI_MAX 2048 /* bytes */

/*
 * May a client register it to be redirected to? https://HOST…, http://… of this very machine
 * (127.0.0.1, [::1], localhost), or a scheme of a native program (cursor://…), never one that a
 * browser or the system opens itself. ASCII, no fragment, no user. *e says what is wrong, without
 * repeating it.
 */
int redirect_check(const char *uri, struct err *e);

/* Is what a client asks for the registered URI? Byte by byte, but for the port of http:// of this
 * machine (RFC 8252, 7.3). */
bool redirect_matches(const char *registered, const char *asked);

/* For people: "claude.ai", "a program on this computer (127.0.0.1:4711)". */
void redirect_describe(const char *uri, struct buf *out);

/* Is it the address of a client's metadata document? https://HOST/PATH without dots as a segment, a
 * fragment, a user or a port. */
bool client_url_is_valid(const char *uri);
/* The host of such a URL, on the heap. */
char *uri_host(const char *uri);

/*
 * The audience of a token: a resource indicator (RFC 8707) that names this server, which is base,
 * base/mcp or base/mcp/NAME, perhaps with a slash at its end; case is ignored in scheme and host.
 * Appends its plain form, without that slash. -1 with ERR_INVALID: it is another one.
 */
int resource_read(const char *base, const char *resource, struct buf *out, struct err *e);
