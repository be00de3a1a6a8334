/*
 * Strict conversion of text from outside: the whole text must match, without signs or blanks. All
 * return 0, or -1 with *out unchanged; the caller writes the message, which names the field.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal digits only, min <= value <= max. */
int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* The decimal digits at the beginning of a text that the kernel wrote, whatever follows them. */
int parse_leading_u64(const char *text, uint64_t *out);
/* Octal digits ("0660" or "660"), at most 07777. */
int parse_mode(const char *text, unsigned *out);
/* "512", "64k", "256MiB", "1gb", "1t" (powers of 1024, either case) into bytes. */
int parse_bytes(const char *text, uint64_t *out);
/* The same, or a share: "25%" sets *out_percent, of 0 to max_percent. The other one becomes 0. */
int parse_share(const char *text, uint64_t max_percent, uint64_t *out_bytes, uint64_t *out_percent);
/* "1500ms", "30s", "5m", "2h", "30d", "1w", or a bare number of seconds, into milliseconds. */
int parse_duration_ms(const char *text, uint64_t *out);
/* A decimal with up to three places ("0.5", "2") into thousandths (500, 2000). */
int parse_milli(const char *text, uint64_t *out);
/* true/false, yes/no, on/off, 1/0. */
int parse_bool(const char *text, bool *out);

/* A day ("2026-12-31"; its end) or a moment ("2026-12-31T18:00:00Z"), both UTC and from 1970 to
 * 9999, into Unix seconds. */
int parse_date(const char *text, int64_t *out);

/* The byte that "%XX" at the start of s, of len bytes, stands for; -1: s starts otherwise. */
int parse_percent(const char *s, size_t len);
