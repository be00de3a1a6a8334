/*
 * Errors: a small struct on the caller's stack, always the last parameter.
 *
 * A function that can fail returns 0 (or a pointer, or a count) on success and -1 (NULL) on
 * failure, and changes *e only on failure. The function that knows the cause writes the text; its
 * callers put context in front (err_wrap); the last one logs it or sends it to the client. No
 * memory is allocated.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>

enum err_kind {
    ERR_NONE = 0,
    ERR_INVALID,     /* the caller's argument is wrong: the text names it */
    ERR_LIMIT,       /* a named limit was exceeded */
    ERR_NOT_FOUND,   /* the named thing does not exist (for this caller) */
    ERR_EXISTS,      /* the thing to create exists already */
    ERR_DENIED,      /* not allowed */
    ERR_BUSY,        /* try again later */
    ERR_UNAVAILABLE, /* a part we depend on (the engine) cannot be reached now */
    ERR_AWAY,        /* our own broker cannot be reached now: the call has not begun */
    ERR_REFUSED,     /* a part we depend on refused; the text is for the operator */
    ERR_LOST,        /* its process ended while it was under way; the outcome is unknown */
    ERR_CANCELLED,   /* the caller has left */
    ERR_TIMEOUT,     /* a deadline passed */
    ERR_IO,          /* the system refused (disk full, permissions) */
    ERR_PROTOCOL,    /* the peer sent something we cannot understand */
    ERR_INTERNAL,    /* a bug of ours */
};

struct err {
    enum err_kind kind;
    int sys;        /* the errno behind it, 0: none; set by err_errno, kept by err_wrap */
    char text[512]; /* one line of valid UTF-8, cut at the end if longer; see err_set */
};

#define ERR_INIT ((struct err){.kind = ERR_NONE})

/*
 * Sets kind and text; always returns -1, as in return err_set(e, ERR_LIMIT, ...). Control
 * characters become blanks and malformed UTF-8 becomes '?', since texts contain names from outside.
 * e may be NULL, and the arguments may point into *e.
 */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As err_set with kind ERR_IO and sys = errno; appends ": <strerror(errno)>" to the text. */
int err_errno(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "<text>: " in front of the text of *e; keeps kind and sys; returns -1. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The kind as a short lower-case word ("invalid", "unavailable"), for the wire between our
 * processes and for logs. */
const char *err_kind_name(enum err_kind kind);

/* Is it the caller's, or for lack of room? The others are failures of ours, or of what we use. */
bool err_is_refusal(enum err_kind kind);

/* The inverse; ERR_INTERNAL for an unknown name. */
enum err_kind err_kind_parse(const char *name);
