/* Forms as browsers and OAuth clients send them (application/x-www-form-urlencoded): a request's
 * query, or its body. */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#define FORM_MAX        32768 /* bytes */
#define FORM_FIELDS_MAX 40

struct form_field {
    const char *name, *value;
};

struct form {
    struct form_field fields[FORM_FIELDS_MAX];
    size_t n;
    char *text; /* owned; the fields point into it */
    size_t size;
};

#define AUTO_FORM AUTO(form_clear)

/*
 * Parses len bytes. ERR_INVALID: a malformed escape, a control character, text that is not UTF-8,
 * or a field that is there twice (RFC 6749, 3.1); ERR_LIMIT: too long, too many fields. *e names
 * the field, if it is one that OAuth knows. Then there is nothing to clear.
 */
int form_parse(const char *text, size_t len, struct form *out, struct err *e);
void form_clear(struct form *f);

/* The value of a field; NULL: it is absent or empty. Valid until form_clear. */
const char *form_get(const struct form *f, const char *name);

/* Appends "name=value", the value escaped, behind a separator ('?', '&'). */
void form_add(struct buf *out, char separator, const char *name, const char *value);
