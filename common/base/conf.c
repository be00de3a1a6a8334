#include "config.h"

#include "common/base/conf.h"

#include "common/base/mem.h"
#include "common/base/parse.h"
#include "common/base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STRING_DEFAULT_MAX 4096
#define QUOTED_MAX         60 /* of a wrong value, in messages */

static const char *initial_of(const struct conf_row *row)
{
    return row->initial ? row->initial : "";
}

/* ---- values as text ---- */

struct print_unit {
    uint64_t factor;
    const char *name;
};

/* The largest unit that divides the value, so that what is printed reads back as the same. */
static void print_in_units(uint64_t value, const struct print_unit *units, struct buf *out)
{
    while (units->factor > 1 && (value == 0 || value % units->factor != 0))
        units++;
    buf_addf(out, "%" PRIu64 "%s", value / units->factor, units->name);
}

static void print_milli(uint64_t value, struct buf *out)
{
    unsigned part = (unsigned)(value % 1000);
    buf_addf(out, "%" PRIu64, value / 1000);
    if (part == 0)
        return;
    int places = 3;
    for (; part % 10 == 0; places--)
        part /= 10;
    buf_addf(out, ".%0*u", places, part);
}

static void print_amount(enum conf_type type, uint64_t value, struct buf *out)
{
    static const struct print_unit bytes[] = {
        {1ull << 30, "g"}, {1ull << 20, "m"}, {1ull << 10, "k"}, {1, ""}};
    static const struct print_unit times[] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};

    if (type == CONF_BYTES)
        print_in_units(value, bytes, out);
    else if (type == CONF_DURATION)
        print_in_units(value, times, out);
    else if (type == CONF_MILLI)
        print_milli(value, out);
    else
        buf_addf(out, "%" PRIu64, value);
}

/* "a", "a or b", "a, b or c" of a list with '|'. */
static void print_choices(const char *choices, struct buf *out)
{
    while (choices) {
        const char *end = strchrnul(choices, '|');
        buf_add(out, choices, (size_t)(end - choices));
        choices = *end ? end + 1 : NULL;
        if (choices)
            buf_add_str(out, strchr(choices, '|') ? ", " : " or ");
    }
}

static void print_choice(const char *choices, int index, struct buf *out)
{
    for (; index > 0 && choices; index--) {
        choices = strchr(choices, '|');
        if (choices)
            choices++;
    }
    if (choices)
        buf_add(out, choices, strcspn(choices, "|"));
}

void conf_format(const struct conf_row *row, const void *settings, struct buf *out)
{
    const void *field = (const char *)settings + row->offset;
    switch (row->type) {
    case CONF_STRING: {
        const char *s = *(char *const *)field;
        if (row->flags & CONF_SECRET)
            buf_add_str(out, s && *s ? "(secret)" : "(empty)");
        else
            buf_add_str(out, s ? s : "");
        break;
    }
    case CONF_NUMBER:
    case CONF_BYTES:
    case CONF_DURATION:
    case CONF_MILLI:
        print_amount(row->type, *(const uint64_t *)field, out);
        break;
    case CONF_BOOL:
        buf_add_str(out, *(const bool *)field ? "true" : "false");
        break;
    case CONF_CHOICE:
        print_choice(row->choices, *(const int *)field, out);
        break;
    }
}

static void describe_amount(const struct conf_row *row, const char *what, const char *like,
                            struct buf *out)
{
    bool bounded = row->max != 0 && row->max != UINT64_MAX;
    buf_addf(out, "%s%s", row->flags & CONF_AUTO ? "auto, or " : "", what);
    if (row->min > 0 || bounded) {
        buf_add_str(out, bounded ? " from " : " of at least ");
        print_amount(row->type, row->min, out);
    }
    if (bounded) {
        buf_add_str(out, " to ");
        print_amount(row->type, row->max, out);
    }
    if (*like)
        buf_addf(out, ", such as %s", like);
}

void conf_describe(const struct conf_row *row, struct buf *out)
{
    switch (row->type) {
    case CONF_STRING: {
        uint64_t min = row->min ? row->min : row->flags & CONF_REQUIRED ? 1 : 0;
        buf_addf(out, "text of %" PRIu64 " to %" PRIu64 " bytes without control characters", min,
                 row->max ? row->max : STRING_DEFAULT_MAX);
        break;
    }
    case CONF_NUMBER:
        describe_amount(row, "a whole number", "", out);
        break;
    case CONF_BYTES:
        describe_amount(row, "a size", "512k, 256m or 1g", out);
        break;
    case CONF_DURATION:
        describe_amount(row, "a time", "1500ms, 30s, 5m, 2h or 30d", out);
        break;
    case CONF_MILLI:
        describe_amount(row, "a number", "2 or 0.5 (at most three places)", out);
        break;
    case CONF_BOOL:
        buf_add_str(out, "true or false");
        break;
    case CONF_CHOICE:
        print_choices(row->choices, out);
        break;
    }
}

/* A vertical line would end the cell. */
static void add_cell(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            buf_add_char(out, '\\');
        buf_add_char(out, *text);
    }
}

/* The group that begins with this row; NULL: none does. */
static const struct conf_group *group_at(const struct conf_group *groups,
                                         const struct conf_row *row)
{
    for (; groups && groups->first; groups++)
        if (strcmp(groups->first, row->name) == 0)
            return groups;
    return NULL;
}

static void print_markdown_row(const struct conf_row *row, struct buf *out)
{
    buf_addf(out, "| `%s` | ", row->name);
    if (*initial_of(row)) {
        buf_add_char(out, '`');
        add_cell(out, initial_of(row));
        buf_add_str(out, "` | ");
    } else {
        buf_add_str(out, row->flags & CONF_REQUIRED ? "(must be set) | " : "(empty) | ");
    }
    add_cell(out, row->help ? row->help : "");
    buf_add_str(out, " |\n");
}

void conf_print_markdown(const struct conf_row *table, const struct conf_group *groups,
                         struct buf *out)
{
    static const char head[] = "| Setting | Default | Meaning |\n|---|---|---|\n";

    if (!groups)
        buf_add_str(out, head);
    for (const struct conf_row *row = table; row->name; row++) {
        const struct conf_group *group = group_at(groups, row);
        if (group)
            buf_addf(out, "%s### %s\n\n%s%s%s", group == groups ? "" : "\n", group->title,
                     group->about, *group->about ? "\n\n" : "", head);
        if (!(row->flags & CONF_FIXED))
            print_markdown_row(row, out);
    }
    if (!groups)
        return;
    buf_add_str(out, "\n### Fixed values\n\nThey cannot be set. Messages name them so.\n\n"
                     "| Name | Value | Meaning |\n|---|---|---|\n");
    for (const struct conf_row *row = table; row->name; row++)
        if (row->flags & CONF_FIXED)
            print_markdown_row(row, out);
}

void conf_print_help(const struct conf_row *table, const struct conf_group *groups, struct buf *out)
{
    for (; table->name; table++) {
        const struct conf_group *group = group_at(groups, table);
        if (group)
            buf_addf(out, "\n%s\n", group->title);
        if (table->flags & CONF_FIXED)
            continue;
        buf_addf(out, "  %s", table->name);
        if (*initial_of(table))
            buf_addf(out, "=%s", initial_of(table));
        else if (table->flags & CONF_REQUIRED)
            buf_add_str(out, " (must be set)");
        buf_addf(out, "\n      %s\n", table->help ? table->help : "");
    }
}

/* Text for roff: "-" and "\\" are escaped, a control character at the beginning of a line is
 * covered, and each sentence begins a line. */
static void add_roff(struct buf *out, const char *text)
{
    bool begins_line = true;

    for (; *text; text++) {
        if (begins_line && (*text == '.' || *text == '\''))
            buf_add_str(out, "\\&");
        begins_line = text[0] == '.' && text[1] == ' ' && text[2] >= 'A' && text[2] <= 'Z';
        if (*text == '\\')
            buf_add_str(out, "\\e");
        else if (*text == '-')
            buf_add_str(out, "\\-");
        else
            buf_add_char(out, *text);
        if (begins_line) {
            buf_add_char(out, '\n');
            text++;
        }
    }
}

void conf_print_man(const struct conf_row *table, const struct conf_group *groups, struct buf *out)
{
    for (; table->name; table++) {
        AUTO_BUF struct buf values = BUF_INIT(STRING_DEFAULT_MAX);
        const struct conf_group *group = group_at(groups, table);

        if (group) {
            buf_addf(out, ".SS %s\n", group->title);
            add_roff(out, group->about);
            buf_add_str(out, *group->about ? "\n" : "");
        }
        if (table->flags & CONF_FIXED)
            continue;
        buf_addf(out, ".TP\n.B %s\n", table->name);
        add_roff(out, table->help ? table->help : "");
        conf_describe(table, &values);
        buf_add_str(out, "\n.br\nValue: ");
        add_roff(out, buf_str(&values));
        if (*initial_of(table)) {
            buf_add_str(out, ".\n.br\nDefault: ");
            add_roff(out, initial_of(table));
            buf_add_str(out, "\n");
        } else {
            buf_add_str(out, table->flags & CONF_REQUIRED ? ".\n.br\nMust be set.\n" : ".\n");
        }
    }
}

/* ---- setting a value ---- */

static void *field_of(const struct conf_row *row, void *settings)
{
    return (char *)settings + row->offset;
}

/* Sets *e to "where: NAME is "text", but must be ..."; a secret's text is left out. */
static int value_refuse(const struct conf_row *row, const char *text, const char *where,
                        struct err *e)
{
    AUTO_BUF struct buf allowed = BUF_INIT(1024);
    conf_describe(row, &allowed);
    if (row->flags & CONF_SECRET)
        return err_set(e, ERR_INVALID, "%s: %s must be %s", where, row->name, buf_str(&allowed));
    size_t len = strlen(text), shown = utf8_cut(text, len, QUOTED_MAX);
    return err_set(e, ERR_INVALID, "%s: %s is \"%.*s%s\", but must be %s", where, row->name,
                   (int)shown, text, shown < len ? "..." : "", buf_str(&allowed));
}

/* "a, b  c" becomes "a,b,c", in place. */
static void join_words(char *list)
{
    char *to = list;

    for (const char *at = list + strspn(list, " ,"); *at; at += strspn(at, " ,")) {
        const size_t len = strcspn(at, " ,");
        if (to != list)
            *to++ = ',';
        memmove(to, at, len);
        to += len;
        at += len;
    }
    *to = '\0';
}

static int set_string(const struct conf_row *row, char **field, const char *text)
{
    size_t len = strlen(text);
    if (len > 0 && (len < row->min || len > (row->max ? row->max : STRING_DEFAULT_MAX)))
        return -1;
    if (!utf8_valid(text, len))
        return -1;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return -1;
    char *copy = mem_strndup(text, len);
    if (row->flags & CONF_LIST)
        join_words(copy);
    free(*field);
    *field = copy;
    return 0;
}

static int set_amount(const struct conf_row *row, uint64_t *field, const char *text)
{
    static int (*const parsers[])(const char *text, uint64_t *out) = {
        [CONF_BYTES] = parse_bytes,
        [CONF_DURATION] = parse_duration_ms,
        [CONF_MILLI] = parse_milli,
    };
    uint64_t value;
    int rc = row->type == CONF_NUMBER ? parse_u64(text, 0, UINT64_MAX, &value)
                                      : parsers[row->type](text, &value);
    bool automatic = row->flags & CONF_AUTO && strcmp(text, "auto") == 0;
    if (!automatic && (rc < 0 || value < row->min || (row->max && value > row->max)))
        return -1;
    *field = automatic ? 0 : value;
    return 0;
}

static int set_choice(const struct conf_row *row, int *field, const char *text)
{
    size_t len = strlen(text);
    const char *word = row->choices;
    for (int i = 0; word; i++) {
        const char *end = strchrnul(word, '|');
        if ((size_t)(end - word) == len && memcmp(word, text, len) == 0) {
            *field = i;
            return 0;
        }
        word = *end ? end + 1 : NULL;
    }
    return -1;
}

static int set_by_type(const struct conf_row *row, void *field, const char *text)
{
    switch (row->type) {
    case CONF_STRING:
        return set_string(row, field, text);
    case CONF_NUMBER:
    case CONF_BYTES:
    case CONF_DURATION:
    case CONF_MILLI:
        return set_amount(row, field, text);
    case CONF_BOOL:
        return parse_bool(text, field);
    case CONF_CHOICE:
        return set_choice(row, field, text);
    }
    return -1;
}

int conf_set(const struct conf_row *row, void *settings, const char *text, const char *where,
             struct err *e)
{
    if (row->type != CONF_STRING && !*text)
        text = initial_of(row);
    if (row->type != CONF_STRING && !*text)
        return 0; /* no default either: stays zero */
    if (set_by_type(row, field_of(row, settings), text) < 0)
        return value_refuse(row, text, where, e);
    return 0;
}

const struct conf_row *conf_find(const struct conf_row *table, const char *name)
{
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0)
            return table;
    return NULL;
}

void conf_clear(const struct conf_row *table, void *settings)
{
    for (const struct conf_row *row = table; row->name; row++) {
        if (row->type != CONF_STRING)
            continue;
        char **field = field_of(row, settings);
        if (*field && (row->flags & CONF_SECRET))
            explicit_bzero(*field, strlen(*field));
        free(*field);
        *field = NULL;
    }
}
