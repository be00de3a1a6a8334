/* Media types of files: by the name's extension for the well-known ones, by content (libmagic) for
 * the rest. */
#ifndef SANDCGI_SANDBOX_MEDIA_H
#define SANDCGI_SANDBOX_MEDIA_H

#include <stddef.h>

/*
 * The media type of a file called name whose first head_len bytes are head (head NULL: by name
 * only). Never NULL: application/octet-stream at last. The result is a literal or lives until the
 * next call.
 */
const char *media_type(const char *name, const void *head, size_t head_len);

#endif
