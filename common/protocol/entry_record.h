/*
 * Records of the container protocol (label sandbox.protocol), which go to a container's stdin;
 * runners/protocol.md describes them for authors of images. {tag, length of the payload as 32 bits
 * big-endian, payload}; the payload begins with the id of a command, 32 bits big-endian.
 */
#pragma once

#include "common/base/buf.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ENTRY_RECORD_HEAD 9                         /* tag, length and id */
#define ENTRY_RECORD_MAX  ((size_t)2 * 1024 * 1024) /* the payload, with the id */

struct entry_record {
    char tag;
    uint32_t id;
    const char *data; /* behind the id */
    size_t len;
};

/* Takes the record at the beginning of data apart. Returns its length with *out filled (out->data
 * points into data), 0 when it is not all there, -1 when it never will be one. */
ssize_t entry_record_take(const char *data, size_t len, struct entry_record *out);

/* Appends records with tag for id that carry data of any length, at least one. */
void entry_record_add(char tag, uint32_t id, const void *data, size_t len, struct buf *out);
/* Begins one whose data is appended next; returns where it is, for entry_record_end. That gives it
 * its length: -1 when it is over ENTRY_RECORD_MAX. out may have failed. */
size_t entry_record_begin(char tag, uint32_t id, struct buf *out);
int entry_record_end(size_t at, struct buf *out);
/* Appends an item of an 'X': a letter, a text without a NUL, and a NUL. */
void entry_item_add(char letter, const char *text, size_t len, struct buf *out);

/* Appends what the records with that tag carry. The records are whole, as for the next. */
void entry_records_join(const char *records, size_t len, char tag, struct buf *out);
/* Appends the records with that id instead of theirs. */
void entry_records_copy(const char *records, size_t len, uint32_t id, struct buf *out);
