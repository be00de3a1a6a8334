/*
 * Pictures that a result shows inline: PNG, JPEG, GIF and WebP. Only their heads are read. A
 * picture of few bytes can have pixels that fill the memory of the client, which would be a link
 * then.
 */
#pragma once

#include "common/base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PICTURE_PIXELS_MAX (64u * 1024 * 1024)

struct picture_size {
    uint64_t width, height; /* 0: it is none, or torn */
};

/* By the first bytes of its content. */
struct picture_size picture_measure(const char *mime_type, const void *data, size_t len);

bool picture_type_is_shown(const char *mime_type);

/* A picture's whole content as an image block; NULL when it is not of that type, its size cannot be
 * read, or it has more than PICTURE_PIXELS_MAX pixels. New reference. */
json_t *picture_new(const char *mime_type, const struct buf *content);
