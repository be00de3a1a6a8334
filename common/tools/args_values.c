/* Values in another form than their argument's. */
#include "config.h"

#include "common/tools/args_values.h"

#include "common/base/auto.h"
#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/rpc/json.h"
#include "common/tools/code_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BLANKS         " \t\r\n"
#define SECONDS_MAX    60 /* what is less than a time may be, and no number of milliseconds */
#define TEXT_DEPTH_MAX 4  /* of a list or an object as text */
#define NUMBER_MAX     32 /* bytes of one as text */
#define WORD_MAX       32

struct word {
    char text[WORD_MAX + 1];
};

/* In small letters, without blanks around; "" when it is longer than a word. */
static struct word word_of(const json_t *value)
{
    const char *text = json_string_value(value);
    struct word w = {""};
    size_t len;

    if (!text)
        return w;
    text += strspn(text, BLANKS);
    len = strlen(text);
    while (len > 0 && strchr(BLANKS, text[len - 1]))
        len--;
    for (size_t i = 0; len <= WORD_MAX && i < len; i++)
        w.text[i] = (char)tolower((unsigned char)text[i]);
    return w;
}

static bool is_blank(const json_t *value)
{
    const char *text = json_string_value(value);

    return text && strspn(text, BLANKS) == json_string_length(value);
}

static json_t *same(json_t *value)
{
    return json_incref(value); /* shared with the call, never changed */
}

/* A list or an object that was written as text, in Python's quotes too; NULL: it is none. */
static json_t *parsed(const json_t *value, char opening)
{
    const char *text = json_string_value(value);
    size_t len = json_string_length(value);
    struct err e = ERR_INIT;
    json_t *json;

    if (!text || text[strspn(text, BLANKS)] != opening)
        return NULL;
    json = json_parse(text, len, TEXT_DEPTH_MAX, &e);
    if (json || memchr(text, '"', len) || memchr(text, '\\', len))
        return json;
    AUTO_FREE char *quoted = mem_strndup(text, len);
    for (char *at = quoted; *at; at++)
        if (*at == '\'')
            *at = '"';
    return json_parse(quoted, strlen(quoted), TEXT_DEPTH_MAX, &e);
}

/* A number or a boolean as a program would print it; NULL: it is another thing. */
static json_t *in_words(json_t *value)
{
    char text[NUMBER_MAX];

    if (json_is_boolean(value))
        return json_string(json_is_true(value) ? "true" : "false");
    if (json_is_integer(value))
        return json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (!json_is_real(value))
        return NULL;
    snprintf(text, sizeof text, "%.15g", json_real_value(value));
    return json_string(text);
}

/* ---- names ---- */

/* What else languages and formats are called; only where the right side is a choice. */
static const struct {
    const char *other, *choice;
} names[] = {
    {"javascript", "typescript"},
    {"js", "typescript"},
    {"jsx", "typescript"},
    {"ts", "typescript"},
    {"tsx", "typescript"},
    {"node", "typescript"},
    {"nodejs", "typescript"},
    {"node.js", "typescript"},
    {"bun", "typescript"},
    {"npm", "typescript"},
    {"py", "python"},
    {"ipython", "python"},
    {"pip", "python"},
    {"sh", "bash"},
    {"shell", "bash"},
    {"golang", "go"},
    {"rs", "rust"},
    {"rb", "ruby"},
    {"rscript", "r"},
    {"pl", "perl"},
    {"tgz", "tar.gz"},
    {"utf-8", "text"},
    {"utf8", "text"},
};

static json_t *choice_like(const json_t *choices, const char *word)
{
    json_t *choice;

    for (size_t i = 0; (choice = json_array_get(choices, i)); i++)
        if (strcasecmp(json_string_value(choice), word) == 0)
            return json_incref(choice);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(names[i].other, word) == 0 && strcmp(names[i].choice, word) != 0)
            return choice_like(choices, names[i].choice);
    return NULL;
}

/* Also with a version behind it ("python 3.13"). What is in no kept list args_fill asks for. */
static json_t *mend_choice(const struct arg_row *row, const struct tools_app *app, json_t *value)
{
    json_auto_t *choices = row->choices(app, NULL);
    struct word w = word_of(value);
    json_t *choice = *w.text ? choice_like(choices, w.text) : NULL;
    size_t len = strlen(w.text);

    while (len > 0 && strchr("0123456789. ", w.text[len - 1]))
        w.text[--len] = '\0';
    if (!choice && len > 0)
        choice = choice_like(choices, w.text);
    return choice ? choice : same(value);
}

/* ---- paths ---- */

/* What programs call /data, and how assistants write links to it. */
static const char *below_data(const char *path)
{
    static const char *const schemes[] = {"sandbox:", "file://"};
    static const char *const roots[] = {
        "/data", "/mnt/data", "/mnt/user-data/outputs", "/home/user", "/home/sandbox", "/workspace",
        "~",     "$HOME",
    };
    size_t len;

    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (strncmp(path, schemes[i], strlen(schemes[i])) == 0 && path[strlen(schemes[i])] == '/')
            path += strlen(schemes[i]);
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        len = strlen(roots[i]);
        if (strncmp(path, roots[i], len) == 0 && (path[len] == '/' || !path[len]))
            return path + len + strspn(path + len, "/");
    }
    return strspn(path, "/") == strlen(path) ? "" : path;
}

/* Without empty parts and ".", but for those at the end of what should be a file. */
static json_t *mend_path(const struct arg_row *row, json_t *value)
{
    const char *text = json_string_value(value), *at = text ? below_data(text) : NULL;
    AUTO_BUF struct buf path = BUF_INIT(json_string_length(value) + 2);
    bool ended = true;

    if (!text || strlen(text) != json_string_length(value))
        return same(value);
    if (*at == '/')
        buf_add_char(&path, '/');
    for (size_t len; *at; at += len + (at[len] == '/')) {
        len = strcspn(at, "/");
        ended = len > 0 && !(len == 1 && *at == '.') && at[len] != '/';
        if (len == 0 || (len == 1 && *at == '.'))
            continue;
        buf_add_str(&path, path.len > 0 && path.data[path.len - 1] != '/' ? "/" : "");
        buf_add(&path, at, len);
    }
    if (!row->folder && !ended && path.len > 0 && path.data[path.len - 1] != '/')
        buf_add_char(&path, '/');
    return strcmp(buf_str(&path), text) == 0 ? same(value) : json_stringn(buf_str(&path), path.len);
}

/* ---- texts ---- */

static json_t *mend_code(const struct arg_row *row, json_t *value, const char *language)
{
    const bool shell = row->is_shell ||
                       (language && (strcmp(language, "bash") == 0 || strcmp(language, "sh") == 0));
    AUTO_BUF struct buf code = BUF_INIT(json_string_length(value) + 1);

    if (!json_is_string(value) ||
        !code_text_mend(json_string_value(value), json_string_length(value), shell, &code))
        return same(value);
    return json_stringn(buf_str(&code), code.len);
}

/* The content of a JSON file that a client has read as JSON; args_fill refuses what is too long. */
static json_t *mend_text(const struct arg_row *row, const struct tools_app *app, json_t *value)
{
    AUTO_BUF struct buf text = BUF_INIT((size_t)args_limit(row, app));

    if (json_is_number(value))
        return in_words(value);
    if (!row->json_too || !(json_is_object(value) || json_is_array(value)))
        return same(value);
    return json_write_pretty(value, &text) == 0 ? json_stringn(buf_str(&text), text.len)
                                                : same(value);
}

/* Behind "data:image/png;base64,"; the whole text where there is no such head. */
static const char *behind_head(const char *text, size_t *len)
{
    static const char ending[] = ";base64,";
    const char *comma = strncasecmp(text, "data:", 5) == 0 ? memchr(text, ',', *len) : NULL;
    const size_t head = comma ? (size_t)(comma - text) + 1 : 0;

    if (head < strlen(ending) ||
        strncasecmp(text + head - strlen(ending), ending, strlen(ending)) != 0)
        return text;
    *len -= head;
    return text + head;
}

/* In lines, with the letters of URLs, without padding. */
static json_t *mend_base64(json_t *value)
{
    size_t len = json_string_length(value);
    const char *text = json_string_value(value), *at = text ? behind_head(text, &len) : NULL;
    AUTO_BUF struct buf plain = BUF_INIT(len + 4);

    if (!text || (at == text && len % 4 == 0 && !strpbrk(text, BLANKS "-_")))
        return same(value);
    for (const char *end = at + len; at < end; at++)
        if (!strchr(BLANKS, *at) || !*at)
            buf_add_char(&plain, *at == '-' ? '+' : *at == '_' ? '/' : *at);
    while (plain.len % 4 > 1 && buf_ok(&plain))
        buf_add_char(&plain, '=');
    return json_stringn(buf_str(&plain), plain.len);
}

/* ---- numbers and booleans ---- */

static const struct {
    const char *unit;
    double ms;
} units[] = {{"", 1},        {"ms", 1},        {"s", 1000},       {"sec", 1000},
             {"secs", 1000}, {"second", 1000}, {"seconds", 1000}, {"m", 60000},
             {"min", 60000}, {"mins", 60000},  {"minute", 60000}, {"minutes", 60000}};

/* "20000", "20.0", and of a time "30 s"; NULL: it is no number. */
static json_t *number_of(json_t *value, bool time)
{
    const struct word w = word_of(value);
    size_t len = strspn(w.text, "0123456789.e+-");
    const char *unit = w.text + len + strspn(w.text + len, " ");
    struct err e = ERR_INIT;
    json_auto_t *number = len > 0 ? json_parse(w.text, len, 1, &e) : NULL;

    if (!json_is_number(number))
        return NULL;
    for (size_t i = 0; i < (time ? ARRAY_LEN(units) : 1); i++)
        if (strcmp(unit, units[i].unit) == 0)
            return json_real(json_number_value(number) * units[i].ms);
    return NULL;
}

/* A time in seconds has one meaning where no program is given so few milliseconds; what is more
 * than a bound is the bound. */
static json_t *mend_number(const struct arg_row *row, const struct tools_app *app, json_t *value,
                           json_t *notices)
{
    const bool time = row->type == ARG_TIME;
    const double limit = (double)args_limit(row, app);
    const struct word w = word_of(value);
    const bool bare = !*w.text || isdigit((unsigned char)w.text[strlen(w.text) - 1]);
    json_t *mended = json_is_number(value) ? same(value) : number_of(value, time);
    double number = json_number_value(mended);

    if (!mended)
        return same(value);
    if (time && bare && number >= 1 && number <= SECONDS_MAX) {
        json_array_append_new(notices,
                              json_sprintf("%s %g was taken as %g s", row->name, number, number));
        json_decref(mended);
        mended = json_real(number *= 1000);
    }
    if (number > limit && (time || row->at_most)) {
        json_array_append_new(notices, json_sprintf("%s %.0f is above the limit: %.0f was taken",
                                                    row->name, number, limit));
        json_decref(mended);
        mended = json_real(limit);
    }
    return mended;
}

static json_t *mend_bool(json_t *value)
{
    static const char *const words[][2] = {
        {"false", "true"}, {"0", "1"}, {"no", "yes"}, {"off", "on"}, {"0.0", "1.0"}};
    const struct word w = word_of(value);
    double number = json_is_number(value) ? json_number_value(value) : -1;

    if (number == 0 || number == 1)
        return json_boolean(number == 1);
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        for (int is = 0; is < 2; is++)
            if (strcmp(w.text, words[i][is]) == 0)
                return json_boolean(is);
    return same(value);
}

/* ---- lists and objects ---- */

/* A piece of a version goes on what is before it: "httpx >= 0.27", "requests>=2,<3". */
static bool goes_on(const struct buf *entry, char first)
{
    return entry->len > 0 &&
           (strchr("<>=!~^", first) || strchr("<>=!~^", entry->data[entry->len - 1]));
}

static void end_entry(struct buf *entry, json_t *list)
{
    if (entry->len > 0)
        json_array_append_new(list, json_stringn(buf_str(entry), entry->len));
    buf_reset(entry);
}

/* A list that has more than its row allows is refused however it goes on. */
static bool is_too_long(const struct arg_row *row, const json_t *list)
{
    return json_array_size(list) > row->max_items;
}

/* "a, b" and "a b" are two names; commas in brackets, and in front of a version, separate none. */
static void split_into(const struct arg_row *row, const char *text, json_t *list)
{
    AUTO_BUF struct buf entry = BUF_INIT(strlen(text) + 1);
    const char *close = strchr(text, ']');
    bool comma = false;
    size_t len;

    for (const char *at = text; *at && !is_too_long(row, list); at += len) {
        comma = false;
        for (len = strspn(at, BLANKS ","); len > 0; len--, at++)
            comma |= *at == ',';
        if (!*at)
            break;
        len = strcspn(at, BLANKS ",");
        const char *open = memchr(at, '[', len);
        if (open && close && close < open)
            close = strchr(open, ']');
        if (open && close && close > at + len)
            len = (size_t)(close - at) + strcspn(close, BLANKS ",");
        if (!goes_on(&entry, *at))
            end_entry(&entry, list);
        else if (comma)
            buf_add_char(&entry, ',');
        buf_add(&entry, at, len);
    }
    end_entry(&entry, list);
}

static void add_entry(const struct arg_row *row, json_t *item, const char *language, json_t *list)
{
    json_t *words = json_is_boolean(item) ? NULL : in_words(item);

    if (row->split && json_is_string(item) &&
        strlen(json_string_value(item)) == json_string_length(item))
        split_into(row, json_string_value(item), list);
    else if (row->is_shell)
        json_array_append_new(list, mend_code(row, item, language));
    else
        json_array_append(list, words ? words : item);
    json_decref(words);
}

static json_t *mend_list(const struct arg_row *row, json_t *value, const char *language)
{
    json_auto_t *items = json_is_array(value) ? json_incref(value) : parsed(value, '[');
    json_t *list, *item;

    if (!json_is_array(items) && !json_is_string(value))
        return same(value);
    list = json_array();
    if (!json_is_array(items))
        add_entry(row, value, language, list);
    for (size_t i = 0; !is_too_long(row, list) && (item = json_array_get(items, i)); i++)
        add_entry(row, item, language, list);
    return list;
}

static json_t *mend_map(json_t *value)
{
    json_auto_t *items = json_is_object(value) ? json_incref(value) : parsed(value, '{');
    json_t *map, *item;
    const char *name;

    if (!json_is_object(items))
        return same(value);
    map = json_object();
    json_object_foreach(items, name, item)
    {
        json_t *words = in_words(item);
        json_object_set(map, name, words ? words : item);
        json_decref(words);
    }
    return map;
}

json_t *args_mend_value(const struct arg_row *row, const struct tools_app *app, json_t *value,
                        const char *language, json_t *notices)
{
    const bool text = row->type == ARG_TEXT || row->type == ARG_BASE64 || row->type == ARG_NAME;

    if (is_blank(value) && !text && (!row->required || row->type == ARG_IDENTIFIER))
        return NULL;
    switch (row->type) {
    case ARG_STRING:
    case ARG_IDENTIFIER:
        if (row->choices && json_is_string(value))
            return mend_choice(row, app, value);
        return row->is_shell     ? mend_code(row, value, language)
               : row->below_data ? mend_path(row, value)
                                 : same(value);
    case ARG_NAME:
        return !row->required && is_blank(value) ? NULL : mend_path(row, value);
    case ARG_TEXT:
        return row->is_code ? mend_code(row, value, language) : mend_text(row, app, value);
    case ARG_BASE64:
        return mend_base64(value);
    case ARG_BOOL:
        return mend_bool(value);
    case ARG_TIME:
    case ARG_INTEGER:
        return mend_number(row, app, value, notices);
    case ARG_LIST:
        return mend_list(row, value, language);
    case ARG_MAP:
        return mend_map(value);
    }
    return same(value);
}
