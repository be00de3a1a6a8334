/* Reading settings: a file, then the environment; first what is set by our names, then the rest. */
#include "config.h"

#include "common/base/conf.h"

#include "common/base/conf_line.h"
#include "common/base/conf_names.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define FILE_MAX_BYTES (1024 * 1024)
#define SLIPS_MAX                                                                                  \
    3 /* letters in which a name that begins as ours may differ from the one meant                 \
       */

struct loader {
    const struct conf_row *table;
    const struct conf_other *others;
    void *settings;
    bool *set; /* which rows are */
    struct buf *notes;
    bool fixed_too;
    bool of_others; /* it takes others' names now, not ours */
    bool lenient;
};

static bool is_key(const char *s)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return *s && !(*s >= '0' && *s <= '9') && s[strspn(s, letters)] == '\0';
}

/* ---- names ---- */

/* A name that is none: refused if it begins as ours do, or is nearly one of them. */
static int judge_name(const struct loader *l, const char *key, const char *where, struct err *e)
{
    const bool ours = conf_names_prefix_is_ours(l->table, key);
    const char *nearest = conf_names_nearest(l->table, key,
                                             ours ? SLIPS_MAX : conf_names_slips(key));

    if (!ours && !nearest)
        return 0;
    return err_set(e, ERR_INVALID, "%s: there is no setting %s%s%s", where, key,
                   nearest ? "; there is " : " (a typing error?)", nearest ? nearest : "");
}

static const struct conf_other *find_other(const struct loader *l, const char *name)
{
    for (const struct conf_other *other = l->others; other && other->name; other++)
        if (strcmp(other->name, name) == 0)
            return other;
    return NULL;
}

/* Its value as ours: one of its words, or with its unit. */
static char *translate(const struct conf_other *other, const char *text)
{
    const size_t len = strlen(text);

    for (const char *at = other->words ? other->words : ""; *at; at += strspn(at, "|")) {
        const size_t n = strcspn(at, "|");
        if (n > len && at[len] == '=' && strncasecmp(at, text, len) == 0)
            return mem_strndup(at + len + 1, n - len - 1);
        at += n;
    }
    bool bare = *text && text[strspn(text, "0123456789")] == '\0';
    return mem_printf("%s%s", text, bare && other->unit ? other->unit : "");
}

/* A setting of another name counts when ours is not set. */
static int set_other(const struct loader *l, const struct conf_other *other, const char *text,
                     const char *where, struct err *e)
{
    const struct conf_row *row = other->ours ? conf_find(l->table, other->ours) : NULL;
    AUTO_FREE char *ours = translate(other, text);

    if (!row || l->set[row - l->table]) {
        buf_addf(l->notes, "%s: %s is not taken: %s\n", where, other->name,
                 row ? row->name : other->instead);
        return 0;
    }
    buf_addf(l->notes, "%s: %s is taken for %s=%s\n", where, other->name, row->name,
             row->flags & CONF_SECRET ? "(secret)" : ours);
    return conf_set(row, l->settings, ours, where, e);
}

static int set_ours(const struct loader *l, const struct conf_row *row, const char *text,
                    const char *where, struct err *e)
{
    if (row->flags & CONF_FIXED && !l->fixed_too) {
        buf_addf(l->notes, "%s: %s is no longer a setting: it is %s\n", where, row->name,
                 *row->initial ? row->initial : "empty");
        return 0;
    }
    l->set[row - l->table] = true;
    return conf_set(row, l->settings, text, where, e);
}

/* ---- the file ---- */

static int set_from_line(const struct loader *l, char *line, const char *where, struct err *e)
{
    struct conf_line pair;
    const enum conf_line_kind kind = conf_line_parse(line, "#", &pair);

    if (kind == CONF_LINE_EMPTY)
        return 0;
    /* The line is not quoted: it may be a secret that lost its key. */
    if (kind == CONF_LINE_NO_PAIR || !is_key(pair.name))
        return err_set(e, ERR_INVALID, "%s: expected KEY=VALUE", where);
    const struct conf_row *row = conf_find(l->table, pair.name);
    const struct conf_other *other = find_other(l, pair.name);
    if (!row && !other)
        return judge_name(l, pair.name, where, e);
    if (l->of_others ? !other : !row)
        return 0;
    if (kind == CONF_LINE_NO_QUOTE)
        return err_set(e, ERR_INVALID, "%s: %s: the quote is not closed", where, pair.name);
    return l->of_others ? set_other(l, other, pair.value, where, e)
                        : set_ours(l, row, pair.value, where, e);
}

/* text is cut into lines in place. */
static int load_text(const struct loader *l, const char *path, char *text, struct err *e)
{
    char *next = conf_line_skip_bom(text);
    for (unsigned number = 1; next && *next; number++) {
        AUTO_FREE char *where = mem_printf("file %s, line %u", path, number);
        char *line = strsep(&next, "\n");
        struct err wrong = ERR_INIT;
        if (set_from_line(l, line, where, &wrong) < 0 && !l->lenient) {
            *e = wrong;
            return -1;
        }
    }
    return 0;
}

/* All room at once: a buffer that grows would leave copies of the secrets in freed memory. */
static int read_text(const char *path, struct buf *text, struct err *e)
{
    if (!buf_reserve(text, FILE_MAX_BYTES))
        return err_set(e, ERR_LIMIT, "file %s: no memory for it", path);
    if (fdio_read_file(path, text, e) < 0)
        return -1;
    if (text->len > 0 && memchr(text->data, 0, text->len))
        return err_set(e, ERR_INVALID, "file %s: is not text (it holds a NUL)", path);
    return 0;
}

static int load_file(const struct loader *l, const char *path, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX_BYTES);
    int result = read_text(path, &text, e);

    if (result == 0)
        result = load_text(l, path, text.data, e);
    if (text.data)
        explicit_bzero(text.data, FILE_MAX_BYTES);
    return result;
}

int conf_file_value(const char *path, const char *name, char **out, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX_BYTES);
    struct conf_line pair;

    *out = NULL;
    if (read_text(path, &text, e) < 0)
        return -1;
    for (char *next = conf_line_skip_bom(text.data), *line; (line = strsep(&next, "\n"));)
        if (conf_line_parse(line, "#", &pair) == CONF_LINE_SET && strcmp(pair.name, name) == 0) {
            free(*out);
            *out = mem_strdup(pair.value);
        }
    explicit_bzero(text.data, FILE_MAX_BYTES);
    return 0;
}

static int check_required(const struct conf_row *table, void *settings, const char *path,
                          struct err *e)
{
    for (const struct conf_row *row = table; row->name; row++) {
        if (!(row->flags & CONF_REQUIRED) || row->type != CONF_STRING ||
            **(char **)((char *)settings + row->offset))
            continue;
        AUTO_BUF struct buf allowed = BUF_INIT(1024);
        conf_describe(row, &allowed);
        return err_set(e, ERR_INVALID, "%s must be set, in %s or the environment, to %s", row->name,
                       path ? path : "a settings file (--config FILE)", buf_str(&allowed));
    }
    return 0;
}

static int load_environment(const struct loader *l, struct err *e)
{
    const char *text;

    for (const struct conf_row *row = l->table; !l->of_others && row->name; row++)
        if ((text = getenv(row->name)) && set_ours(l, row, text, "environment", e) < 0)
            return -1;
    for (const struct conf_other *other = l->others; l->of_others && other && other->name; other++)
        if ((text = getenv(other->name)) && set_other(l, other, text, "environment", e) < 0)
            return -1;
    return 0;
}

/* Names in the environment are others' affair, but for those that are nearly ours. */
static void note_slips(const struct loader *l)
{
    for (char **at = environ; l->notes && *at; at++) {
        AUTO_FREE char *name = mem_strndup(*at, strcspn(*at, "="));
        const char *meant = conf_find(l->table, name) || find_other(l, name)
                                ? NULL
                                : conf_names_nearest(l->table, name, conf_names_slips(name));
        const size_t len = strlen(name);
        if (meant && strlen(meant) + 1 >= len && strlen(meant) <= len + 1)
            buf_addf(l->notes, "environment: there is no setting %s; there is %s\n", name, meant);
    }
}

int conf_load(const struct conf_source *from, void *settings, struct buf *notes, struct err *e)
{
    size_t n = 0;

    for (const struct conf_row *row = from->table; row->name; row++, n++)
        if (conf_set(row, settings, row->initial ? row->initial : "", "default", e) < 0)
            return -1;
    AUTO_FREE bool *set = mem_array(n, sizeof *set);
    struct loader l = {.table = from->table,
                       .others = from->others,
                       .settings = settings,
                       .set = set,
                       .notes = notes,
                       .fixed_too = from->fixed_too,
                       .lenient = from->lenient};
    for (int others = 0; others < 2; others++) {
        l.of_others = others;
        if ((from->path && load_file(&l, from->path, e) < 0) || load_environment(&l, e) < 0)
            return -1;
    }
    note_slips(&l);
    return check_required(from->table, settings, from->path, e);
}
