#include "config.h"

#include "common/base/conf_line.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define BLANKS " \t\r"
#define BOM    "\xef\xbb\xbf"

char *conf_line_skip_bom(char *text)
{
    return strncmp(text, BOM, 3) == 0 ? text + 3 : text;
}

char *conf_line_trim(char *text)
{
    text += strspn(text, BLANKS);
    size_t len = strlen(text);
    while (len > 0 && strchr(BLANKS, text[len - 1]))
        text[--len] = '\0';
    return text;
}

char *conf_line_bare(char *text, const char *comments)
{
    for (char *at = text; *at; at++)
        if (strchr(BLANKS, *at) && at[1] && strchr(comments, at[1])) {
            *at = '\0';
            break;
        }
    return conf_line_trim(text);
}

/* A comment, or nothing. */
static bool is_over(const char *text, const char *comments)
{
    const size_t blanks = strspn(text, BLANKS);

    return !text[blanks] || (blanks > 0 && strchr(comments, text[blanks]));
}

/* The quote that ends the value is the first one that nothing follows. */
static char *unquote(char *text, const char *comments)
{
    const char quote = *text++;

    for (char *end = strchr(text, quote); end; end = strchr(end + 1, quote))
        if (is_over(end + 1, comments)) {
            *end = '\0';
            return text;
        }
    return NULL;
}

enum conf_line_kind conf_line_parse(char *line, const char *comments, struct conf_line *out)
{
    char *name = line + strspn(line, BLANKS);
    char *equals = strchr(name, '=');

    if (!*name || strchr(comments, *name))
        return CONF_LINE_EMPTY;
    if (!equals)
        return CONF_LINE_NO_PAIR;
    *equals = '\0';
    if (strncmp(name, "export", 6) == 0 && name[6] && strchr(BLANKS, name[6]))
        name += 7;
    out->name = conf_line_trim(name);
    out->value = equals + 1 + strspn(equals + 1, BLANKS);
    if (*out->value == '"' || *out->value == '\'')
        out->value = unquote(out->value, comments);
    else
        out->value = conf_line_bare(equals + 1, comments);
    return out->value ? CONF_LINE_SET : CONF_LINE_NO_QUOTE;
}
