/* Content blocks of tool results. All return new references. */
#pragma once

#include "common/base/buf.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that are not UTF-8 are repaired. */
json_t *content_text_new(const char *text, size_t len);

/* data is encoded here. */
json_t *content_image_new(const void *data, size_t len, const char *mime_type);

/* A link to a file; name may be hostile and is cleaned for display. size < 0: unknown. */
json_t *content_link_new(const char *uri, const char *name, const char *mime_type, int64_t size);

/* A resource_link block as a line of text, for clients that do not support such blocks. */
json_t *content_link_to_text(const json_t *link);

/*
 * Appends a name chosen by a program, for display: control characters, line separators and marks
 * that change the reading direction become U+FFFD, so that a name cannot imitate other text. s is
 * valid UTF-8.
 */
void content_clean_name(const char *s, struct buf *out);
