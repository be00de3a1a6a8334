#include "config.h"

#include "fcgi/oauth/server/form.h"

#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/base/utf8.h"

#include <string.h>

#define NAME_MAX_SHOWN 40
#define UNRESERVED                                                                                 \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~" /* RFC 3986 */

/* Decodes in place, which makes it no longer. -1: a malformed escape, or a control character. */
static int decode(char *text)
{
    size_t len = strlen(text), n = 0;

    for (size_t i = 0; i < len; i++) {
        int c = (unsigned char)text[i];
        if (c == '%') {
            if ((c = parse_percent(text + i, len - i)) < 0)
                return -1;
            i += 2;
        } else if (c == '+')
            c = ' ';
        if (c < ' ' || c == 0x7f)
            return -1;
        text[n++] = (char)c;
    }
    text[n] = '\0';
    return utf8_valid(text, n) ? 0 : -1;
}

static bool is_plain_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz_");

    return len > 0 && !name[len] && len <= NAME_MAX_SHOWN;
}

static int add_field(struct form *f, char *pair, struct err *e)
{
    char *equals = strchr(pair, '=');
    char *value = equals ? equals + 1 : pair + strlen(pair);

    if (equals)
        *equals = '\0';
    if (decode(pair) < 0)
        return err_set(e, ERR_INVALID, "the name of a field is malformed");
    const char *shown = is_plain_name(pair) ? pair : "a field";
    if (decode(value) < 0)
        return err_set(e, ERR_INVALID,
                       "%s is malformed: a wrong %%, a control character, or no UTF-8", shown);
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->fields[i].name, pair) == 0)
            return err_set(e, ERR_INVALID, "%s is there twice", shown);
    if (f->n == FORM_FIELDS_MAX)
        return err_set(e, ERR_LIMIT, "more than %d fields", FORM_FIELDS_MAX);
    f->fields[f->n++] = (struct form_field){pair, value};
    return 0;
}

int form_parse(const char *text, size_t len, struct form *out, struct err *e)
{
    *out = (struct form){0};
    if (len > FORM_MAX)
        return err_set(e, ERR_LIMIT, "the parameters are longer than %d bytes", FORM_MAX);
    if (memchr(text, '\0', len))
        return err_set(e, ERR_INVALID, "the parameters have a NUL");
    out->text = mem_strndup(text, len);
    out->size = len;
    for (char *rest = out->text, *pair; (pair = strsep(&rest, "&"));)
        if (*pair && add_field(out, pair, e) < 0) {
            form_clear(out);
            return -1;
        }
    return 0;
}

void form_clear(struct form *f)
{
    if (f->text)
        explicit_bzero(f->text, f->size); /* it may hold a passphrase or a code */
    free(f->text);
    *f = (struct form){0};
}

const char *form_get(const struct form *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->fields[i].name, name) == 0)
            return *f->fields[i].value ? f->fields[i].value : NULL;
    return NULL;
}

void form_add(struct buf *out, char separator, const char *name, const char *value)
{
    buf_addf(out, "%c%s=", separator, name);
    while (*value) {
        size_t plain = strspn(value, UNRESERVED);
        buf_add(out, value, plain);
        value += plain;
        if (*value)
            buf_addf(out, "%%%02X", (unsigned)(unsigned char)*value++);
    }
}
