/* Names of arguments: other styles, other names, those that there are not. */
#include "config.h"

#include "common/tools/args_mend.h"

#include "common/base/auto.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/mcp/route.h"
#include "common/rpc/json.h"
#include "common/tools/args_values.h"

#include <string.h>

#define NAMES_MAX     64 /* of a call whose arguments may have other names */
#define NEAR_MAX      32 /* bytes of names that are compared */
#define UNKNOWN_SHOWN 5

struct mending {
    const struct arg_row *table;
    const json_t *given;
    json_t *used; /* names of given that are those of a row */
};

static const struct arg_row *row_named(const struct arg_row *table, const char *name)
{
    for (const struct arg_row *row = table; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

/* Is it name without its unit, in seconds ("timeout_seconds" for timeoutMs)? */
static bool is_in_seconds(const char *name, const struct arg_row *row)
{
    static const char *const units[] = {"s", "sec", "secs", "seconds", "inseconds"};

    for (size_t i = 0; row->type == ARG_TIME && i < ARRAY_LEN(units); i++) {
        AUTO_FREE char *other = mem_printf("%.*s%s", (int)(strlen(row->name) - strlen("Ms")),
                                           row->name, units[i]);
        if (mcp_argument_is(name, other))
            return true;
    }
    return false;
}

static const char *given_as(const struct mending *m, const char *name, size_t len)
{
    AUTO_FREE char *wanted = mem_strndup(name, len);
    const char *other;
    json_t *value;

    json_object_foreach((json_t *)m->given, other, value)
    {
        if (!json_is_null(value) && !row_named(m->table, other) &&
            !json_object_get(m->used, other) && mcp_argument_is(other, wanted))
            return other;
    }
    return NULL;
}

static const char *given_in_seconds(const struct mending *m, const struct arg_row *row)
{
    const char *other;
    json_t *value;

    json_object_foreach((json_t *)m->given, other, value)
    {
        if ((json_is_number(value) || json_is_string(value)) && !row_named(m->table, other) &&
            is_in_seconds(other, row))
            return other;
    }
    return NULL;
}

/* With its unit, unless it has one; what is in seconds already is not taken for seconds again. */
static json_t *with_seconds(json_t *value)
{
    const char *text = json_string_value(value);
    size_t len = json_string_length(value);

    if (!text)
        return json_sprintf("%.15g s", json_number_value(value));
    while (len > 0 && strchr(" \t\r\n", text[len - 1]))
        len--;
    return len > 0 && strchr("0123456789.", text[len - 1]) ? json_sprintf("%.*s s", (int)len, text)
                                                           : json_incref(value);
}

/* The row's name in the call; of its other names the first that is given counts. */
static const char *name_of(const struct mending *m, const struct arg_row *row)
{
    const char *name = row->name, *at = row->also ? row->also : "";

    if (json_object_get(m->given, name) && !json_is_null(json_object_get(m->given, name)))
        return name;
    if (json_object_size(m->given) > NAMES_MAX)
        return NULL;
    name = given_as(m, row->name, strlen(row->name));
    for (size_t len; !name && *at; at += len + strspn(at + len, " ")) {
        len = strcspn(at, " ");
        name = given_as(m, at, len);
    }
    return name;
}

static json_t *value_of(struct mending *m, const struct arg_row *row)
{
    const char *name = name_of(m, row);

    if (!name && row->type == ARG_TIME && json_object_size(m->given) <= NAMES_MAX) {
        name = given_in_seconds(m, row);
        if (name) {
            json_object_set_new(m->used, name, json_true());
            return with_seconds(json_object_get(m->given, name));
        }
    }
    if (!name)
        return NULL;
    json_object_set_new(m->used, name, json_true());
    return json_incref(json_object_get(m->given, name));
}

/* ---- names that there are not ---- */

static size_t least(size_t a, size_t b, size_t c)
{
    size_t two = a < b ? a : b;

    return two < c ? two : c;
}

/* Letters to change, add or take away (Levenshtein): 1 in a short name, 2 in others. */
bool args_near(const char *a, const char *b)
{
    size_t la = strlen(a), lb = strlen(b), row[NEAR_MAX + 1];

    if (la > NEAR_MAX || lb > NEAR_MAX)
        return false;
    for (size_t j = 0; j <= lb; j++)
        row[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t corner = row[0];

        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t above = row[j];
            row[j] = least(above + 1, row[j - 1] + 1, corner + (a[i - 1] != b[j - 1]));
            corner = above;
        }
    }
    return row[lb] <= (lb > 4 ? 2 : 1);
}

static const struct arg_row *row_near(const struct mending *m, const char *name)
{
    const bool many = json_object_size(m->given) > NAMES_MAX;

    for (const struct arg_row *row = m->table; !many && row->name; row++)
        if (args_near(name, row->name))
            return row;
    return NULL;
}

static int check_near(const struct mending *m, const json_t *mended, const char *name,
                      struct err *e)
{
    const struct arg_row *row = row_near(m, name);
    AUTO_BUF struct buf shown = BUF_INIT(256);

    if (!row || !row->required || json_object_get(mended, row->name))
        return 0;
    args_add_name(name, &shown);
    log_reason("unknown_argument", name);
    return err_set(e, ERR_INVALID, "unknown argument '%s'; did you mean '%s'?", buf_str(&shown),
                   row->name);
}

static int pass_over(const struct mending *m, const json_t *mended, json_t *notices, struct err *e)
{
    AUTO_BUF struct buf names = BUF_INIT(UNKNOWN_SHOWN * 256);
    const char *name;
    json_t *value;
    size_t n = 0;

    json_object_foreach((json_t *)m->given, name, value)
    {
        if (row_named(m->table, name) || json_object_get(m->used, name))
            continue;
        if (check_near(m, mended, name, e) < 0)
            return -1;
        if (n++ >= UNKNOWN_SHOWN)
            continue;
        const struct arg_row *near = row_near(m, name);
        buf_add_str(&names, n > 1 ? ", '" : "'");
        args_add_name(name, &names);
        buf_add_char(&names, '\'');
        if (near)
            buf_addf(&names, " (did you mean '%s'?)", near->name);
    }
    if (n > 0)
        json_array_append_new(notices,
                              json_sprintf("unknown argument%s %s%s: passed over", n > 1 ? "s" : "",
                                           buf_str(&names), n > UNKNOWN_SHOWN ? ", …" : ""));
    return 0;
}

json_t *args_mend(const struct arg_row *table, const struct tools_app *app, const json_t *arguments,
                  json_t *notices, struct err *e)
{
    json_auto_t *used = json_object();
    json_auto_t *mended = json_object();
    struct mending m = {.table = table, .given = arguments, .used = used};

    for (const struct arg_row *row = table; row->name; row++) {
        json_auto_t *value = value_of(&m, row);
        json_t *its = value ? args_mend_value(row, app, value, json_get_string(mended, "language"),
                                              notices)
                            : NULL;
        if (its)
            json_object_set_new(mended, row->name, its);
    }
    return pass_over(&m, mended, notices, e) < 0 ? NULL : json_incref(mended);
}
