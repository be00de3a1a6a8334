#include "config.h"

#include "common/base/err.h"

#include "common/base/auto.h"
#include "common/base/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const kind_names[] = {
    [ERR_NONE] = "none",         [ERR_INVALID] = "invalid",
    [ERR_LIMIT] = "limit",       [ERR_NOT_FOUND] = "not_found",
    [ERR_EXISTS] = "exists",     [ERR_DENIED] = "denied",
    [ERR_BUSY] = "busy",         [ERR_UNAVAILABLE] = "unavailable",
    [ERR_AWAY] = "away",         [ERR_REFUSED] = "refused",
    [ERR_LOST] = "lost",         [ERR_CANCELLED] = "cancelled",
    [ERR_TIMEOUT] = "timeout",   [ERR_IO] = "io",
    [ERR_PROTOCOL] = "protocol", [ERR_INTERNAL] = "internal",
};

/* Copies text as one line of valid UTF-8, replacing byte by byte so that it never grows. */
static void copy_tidy(char *out, size_t size, const char *text)
{
    size_t len = strlen(text), used = 0;
    for (size_t i = 0; i < len;) {
        size_t n = utf8_char_len(text + i, len - i);
        if (used + (n ? n : 1) >= size)
            break;
        if (n > 1) {
            memcpy(out + used, text + i, n);
        } else {
            unsigned char c = (unsigned char)text[i];
            out[used] = n == 0 ? '?' : c < 0x20 || c == 0x7f ? ' ' : text[i];
            n = 1;
        }
        used += n;
        i += n;
    }
    out[used] = '\0';
}

static void set_text(struct err *e, enum err_kind kind, int sys, const char *text)
{
    if (!e)
        return;
    e->kind = kind;
    e->sys = sys;
    copy_tidy(e->text, sizeof e->text, text);
}

/* A little longer than err.text: copy_tidy then removes a character that was cut. */
#define SCRATCH (sizeof((struct err *)NULL)->text + 8)

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    char text[SCRATCH];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    set_text(e, kind, 0, text);
    return -1;
}

int err_errno(struct err *e, const char *fmt, ...)
{
    int saved = errno;
    char text[SCRATCH], whole[SCRATCH];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    errno = saved;
    /* Room for the reason, which matters more than the end of a long name. */
    snprintf(whole, sizeof whole, "%.*s: %m", (int)utf8_cut(text, strlen(text), SCRATCH - 128),
             text);
    set_text(e, ERR_IO, saved, whole);
    errno = saved;
    return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    if (!e)
        return -1;
    char text[SCRATCH], whole[2 * SCRATCH];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    snprintf(whole, sizeof whole, "%s: %s", text, e->text);
    set_text(e, e->kind, e->sys, whole);
    return -1;
}

const char *err_kind_name(enum err_kind kind)
{
    return (unsigned)kind < ARRAY_LEN(kind_names) ? kind_names[kind] : kind_names[ERR_INTERNAL];
}

bool err_is_refusal(enum err_kind kind)
{
    return kind >= ERR_INVALID && kind <= ERR_BUSY;
}

enum err_kind err_kind_parse(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(kind_names); i++)
        if (strcmp(kind_names[i], name) == 0)
            return (enum err_kind)i;
    return ERR_INTERNAL;
}
