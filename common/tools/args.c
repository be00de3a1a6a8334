#include "config.h"

#include "common/tools/args.h"

#include "common/base/b64.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/utf8.h"
#include "common/mcp/features/content.h"
#include "common/tools/tools_app.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

uint64_t args_setting(const struct tools_app *app, size_t setting)
{
    uint64_t value;

    memcpy(&value, (const char *)&app->limits + setting - 1, sizeof(value));
    return value;
}

uint64_t args_limit(const struct arg_row *row, const struct tools_app *app)
{
    return row->max_setting ? args_setting(app, row->max_setting) : row->max;
}

static void *field(const struct arg_row *row, void *out)
{
    return (char *)out + row->offset;
}

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number",  [JSON_TRUE] = "a boolean",
        [JSON_FALSE] = "a boolean",  [JSON_NULL] = "null",
    };

    return names[json_typeof(value)];
}

static int fail_type(const struct arg_row *row, const json_t *value, const char *wanted,
                     struct err *e)
{
    log_reason("type", row->name);
    return err_set(e, ERR_INVALID, "argument '%s' must be %s, not %s", row->name, wanted,
                   type_name(value));
}

static int fail_limit(const struct arg_row *row, uint64_t limit, struct err *e)
{
    return err_set(e, ERR_LIMIT, "argument '%s' is longer than %" PRIu64 " bytes", row->name,
                   limit);
}

static bool has_nul(const json_t *string)
{
    return strlen(json_string_value(string)) != json_string_length(string);
}

static bool has_control(const char *s)
{
    AUTO_BUF struct buf clean = BUF_INIT(4096);

    /* Cleaning replaces exactly the characters that no identifier should have. */
    content_clean_name(s, &clean);
    return strcmp(buf_str(&clean), s) != 0;
}

/* ---- strings ---- */

/* What other servers' sets take (args_fill alone); args_mend takes more of them away. */
static const char *name_below_data(const char *name)
{
    static const char *const fronts[] = {"/data/", "./"};

    for (size_t i = 0; i < sizeof(fronts) / sizeof(fronts[0]);) {
        size_t len = strlen(fronts[i]);
        bool here = strncmp(name, fronts[i], len) == 0;

        name += here ? len : 0;
        i = here ? 0 : i + 1;
    }
    return strcmp(name, "/data") == 0 || strcmp(name, ".") == 0 ? "" : name;
}

static int check_choice(const struct arg_row *row, const struct tools_app *app, const char *value,
                        struct err *e)
{
    json_auto_t *choices = row->choices ? row->choices(app, value) : NULL;
    AUTO_BUF struct buf list = BUF_INIT(400);
    json_t *choice;

    if (!choices)
        return 0;
    for (size_t i = 0; (choice = json_array_get(choices, i)); i++) {
        if (strcmp(json_string_value(choice), value) == 0)
            return 0;
        buf_addf(&list, "%s%s", i ? ", " : "", json_string_value(choice));
    }
    log_reason("choice", row->name);
    return err_set(e, ERR_INVALID, "argument '%s' must be one of: %s", row->name,
                   list.len ? buf_str(&list) : "(there are none at the moment)");
}

static int fill_string(const struct arg_row *row, const struct tools_app *app, const json_t *value,
                       const char **out, struct err *e)
{
    uint64_t limit = args_limit(row, app);

    if (!json_is_string(value))
        return fail_type(row, value, "a string", e);
    if (json_string_length(value) > limit)
        return fail_limit(row, limit, e);
    if (has_nul(value))
        return err_set(e, ERR_INVALID, "argument '%s' must not contain NUL characters", row->name);
    if (row->type == ARG_IDENTIFIER && json_string_length(value) == 0)
        return err_set(e, ERR_INVALID, "argument '%s' must not be empty", row->name);
    if (row->type == ARG_IDENTIFIER && has_control(json_string_value(value)))
        return err_set(e, ERR_INVALID, "argument '%s' must not contain control characters",
                       row->name);
    if (check_choice(row, app, json_string_value(value), e) < 0)
        return -1;
    *out = json_string_value(value);
    if (row->type == ARG_NAME)
        *out = name_below_data(*out);
    return 0;
}

/* The length of decoded base64 text, if it is valid. */
static size_t decoded_len(const json_t *base64)
{
    const char *text = json_string_value(base64);
    size_t len = json_string_length(base64), padding = 0;

    while (padding < 2 && padding < len && text[len - padding - 1] == '=')
        padding++;
    return len < 4 ? 0 : B64_DECODED_MAX(len) - padding;
}

static int fill_text(const struct arg_row *row, const struct tools_app *app, const json_t *value,
                     struct run_text *out, struct err *e)
{
    uint64_t limit = args_limit(row, app);

    if (row->json_too && (json_is_object(value) || json_is_array(value)))
        return fail_limit(row, limit, e); /* args_mend makes a text of what fits */
    if (!json_is_string(value))
        return fail_type(row, value, "a string", e);
    if (row->type == ARG_BASE64 && decoded_len(value) > limit)
        return err_set(e, ERR_LIMIT, "argument '%s' decodes to more than %" PRIu64 " bytes",
                       row->name, limit);
    if (row->type == ARG_TEXT && json_string_length(value) > limit)
        return fail_limit(row, limit, e);
    out->data = json_string_value(value);
    out->len = json_string_length(value);
    return 0;
}

/* ---- numbers ---- */

/* JSON has one kind of number: 30.0 is as good as 30. */
static int fill_number(const struct arg_row *row, const struct tools_app *app, const json_t *value,
                       uint64_t *out, struct err *e)
{
    const bool time = row->type == ARG_TIME;
    const int least = time ? ARG_TIME_MIN_MS : 0;
    const char *unit = time ? " milliseconds" : "";
    uint64_t limit = args_limit(row, app);
    double number = json_number_value(value);

    if (!json_is_number(value) || number != floor(number))
        return err_set(
            e, ERR_INVALID, "argument '%s' must be an integer from %d to %" PRIu64 "%s, not %s",
            row->name, least, limit, unit, json_is_number(value) ? "a fraction" : type_name(value));
    if (number < least || number > (double)limit)
        log_reason("range", row->name);
    if (number < least || number > (double)limit)
        return err_set(e, ERR_INVALID, "argument '%s' must be from %d to %" PRIu64 "%s", row->name,
                       least, limit, unit);
    *out = (uint64_t)number;
    return 0;
}

static int fill_integer(const struct arg_row *row, const struct tools_app *app, const json_t *value,
                        struct arg_integer *out, struct err *e)
{
    out->given = fill_number(row, app, value, &out->value, e) == 0;
    return out->given ? 0 : -1;
}

/* ---- lists and maps ---- */

static int fail_items(const struct arg_row *row, struct err *e)
{
    return err_set(e, ERR_LIMIT, "argument '%s' has more than %zu entries", row->name,
                   row->max_items);
}

static int fill_list(const struct arg_row *row, const struct tools_app *app, const json_t *value,
                     struct arg_list *out, struct err *e)
{
    uint64_t limit = args_limit(row, app), total = 0;
    json_t *item;

    if (!json_is_array(value))
        return fail_type(row, value, "an array of strings", e);
    if (json_array_size(value) > row->max_items)
        return fail_items(row, e);
    out->items = mem_array(json_array_size(value), sizeof(*out->items));
    for (size_t i = 0; (item = json_array_get(value, i)); i++) {
        if (!json_is_string(item))
            return err_set(e, ERR_INVALID, "argument '%s': entry %zu must be a string, not %s",
                           row->name, i + 1, type_name(item));
        if (has_nul(item))
            return err_set(e, ERR_INVALID, "argument '%s': entry %zu contains a NUL character",
                           row->name, i + 1);
        total += json_string_length(item);
        if (total > limit)
            return fail_limit(row, limit, e);
        out->items[out->n++] = (struct run_text){json_string_value(item), json_string_length(item)};
    }
    return 0;
}

/* Names come from the client: they are cut and cleaned before they enter a message. */
void args_add_name(const char *name, struct buf *out)
{
    AUTO_BUF struct buf cut = BUF_INIT(64);

    buf_add(&cut, name, utf8_cut(name, strlen(name), 60));
    content_clean_name(buf_str(&cut), out);
}

static int check_map_value(const struct arg_row *row, const char *name, const json_t *value,
                           struct err *e)
{
    AUTO_BUF struct buf shown = BUF_INIT(256);

    if (json_is_string(value) && !has_nul(value))
        return 0;
    args_add_name(name, &shown);
    if (!json_is_string(value))
        return err_set(e, ERR_INVALID, "argument '%s': the value of '%s' must be a string, not %s",
                       row->name, buf_str(&shown), type_name(value));
    return err_set(e, ERR_INVALID, "argument '%s': the value of '%s' contains a NUL character",
                   row->name, buf_str(&shown));
}

static int fill_map(const struct arg_row *row, const struct tools_app *app, const json_t *value,
                    struct arg_map *out, struct err *e)
{
    uint64_t limit = args_limit(row, app), total = 0;
    const char *name;
    json_t *item;

    if (!json_is_object(value))
        return fail_type(row, value, "an object of strings", e);
    if (json_object_size(value) > row->max_items)
        return fail_items(row, e);
    out->items = mem_array(json_object_size(value), sizeof(*out->items));
    json_object_foreach((json_t *)value, name, item)
    {
        if (check_map_value(row, name, item, e) < 0)
            return -1;
        total += strlen(name) + json_string_length(item);
        if (total > limit)
            return fail_limit(row, limit, e);
        out->items[out->n++] = (struct run_env){name, json_string_value(item)};
    }
    return 0;
}

/* ---- all of them ---- */

static int fill_row(const struct arg_row *row, const struct tools_app *app, const json_t *value,
                    void *out, struct err *e)
{
    switch (row->type) {
    case ARG_STRING:
    case ARG_NAME:
    case ARG_IDENTIFIER:
        return fill_string(row, app, value, field(row, out), e);
    case ARG_TEXT:
    case ARG_BASE64:
        return fill_text(row, app, value, field(row, out), e);
    case ARG_BOOL:
        if (!json_is_boolean(value))
            return fail_type(row, value, "true or false", e);
        *(bool *)field(row, out) = json_is_true(value);
        return 0;
    case ARG_TIME:
        return fill_number(row, app, value, field(row, out), e);
    case ARG_INTEGER:
        return fill_integer(row, app, value, field(row, out), e);
    case ARG_LIST:
        return fill_list(row, app, value, field(row, out), e);
    case ARG_MAP:
        return fill_map(row, app, value, field(row, out), e);
    }
    return err_set(e, ERR_INTERNAL, "argument '%s' has no type", row->name);
}

static int check_unknown(const struct arg_row *table, const json_t *arguments, struct err *e)
{
    AUTO_BUF struct buf shown = BUF_INIT(256);
    AUTO_BUF struct buf known = BUF_INIT(400);
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)arguments, name, value)
    {
        const struct arg_row *row = table;
        while (row->name && strcmp(row->name, name) != 0)
            row++;
        if (row->name)
            continue;
        args_add_name(name, &shown);
        log_reason("unknown_argument", name);
        for (row = table; row->name; row++)
            buf_addf(&known, "%s%s", row == table ? "" : ", ", row->name);
        return err_set(e, ERR_INVALID, "unknown argument '%s'; %s%s", buf_str(&shown),
                       known.len ? "there are: " : "this tool has none", buf_str(&known));
    }
    return 0;
}

int args_fill(const struct arg_row *table, const struct tools_app *app, const json_t *arguments,
              void *out, struct err *e)
{
    if (arguments && check_unknown(table, arguments, e) < 0)
        return -1;
    for (const struct arg_row *row = table; row->name; row++) {
        const json_t *value = json_object_get(arguments, row->name);

        if (!value || (json_is_null(value) && !row->required)) {
            if (row->required)
                log_reason("missing", row->name);
            if (row->required)
                return err_set(e, ERR_INVALID, "argument '%s' is required%s", row->name,
                               row->missing ? row->missing : "");
            continue;
        }
        if (fill_row(row, app, value, out, e) < 0) {
            log_reason(e->kind == ERR_LIMIT ? "too_long" : "value", row->name);
            return -1;
        }
    }
    return 0;
}

void args_clear(const struct arg_row *table, void *filled)
{
    for (const struct arg_row *row = table; row->name; row++) {
        if (row->type == ARG_LIST) {
            struct arg_list *list = field(row, filled);
            free(list->items);
            *list = (struct arg_list){0};
        } else if (row->type == ARG_MAP) {
            struct arg_map *map = field(row, filled);
            free(map->items);
            *map = (struct arg_map){0};
        }
    }
}

bool args_unlisted(void *app)
{
    (void)app;
    return false;
}
