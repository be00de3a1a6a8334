/* Reading settings: a file, then the environment; first what is set by our names, then the rest. */
#include "config.h"

#include "common/base/conf.h"

#include "common/base/fdio.h"
#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FILE_MAX_BYTES (1024 * 1024)
#define NAME_MAX_LEN   64
#define FAR            4 /* letters in which a name differs from one that is not meant */

struct loader {
    const struct conf_row *table;
    const struct conf_other *others;
    void *settings;
    bool *set; /* which rows are */
    struct buf *notes;
    bool of_others; /* it takes others' names now, not ours */
};

/* True when the table has a name with the same part up to the first '_'. */
static bool prefix_is_ours(const struct conf_row *table, const char *name)
{
    size_t len = strcspn(name, "_");
    for (; name[len] && table->name; table++)
        if (strncmp(table->name, name, len + 1) == 0)
            return true;
    return false;
}

static bool is_key(const char *s)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return *s && !(*s >= '0' && *s <= '9') && s[strspn(s, letters)] == '\0';
}

/* Cuts blanks off both ends, in place. */
static char *trim(char *s)
{
    s += strspn(s, " \t\r");
    size_t len = strlen(s);
    while (len > 0 && strchr(" \t\r", s[len - 1]))
        s[--len] = '\0';
    return s;
}

/* Removes one pair of quotes in place; NULL when the closing one is missing. */
static char *unquote(char *s)
{
    if (*s != '"' && *s != '\'')
        return s;
    size_t len = strlen(s);
    if (len < 2 || s[len - 1] != s[0])
        return NULL;
    s[len - 1] = '\0';
    return s + 1;
}

/* ---- names ---- */

/* How many letters must be put in, taken away or changed to make the one of the other. */
static size_t distance(const char *a, const char *b)
{
    size_t row[NAME_MAX_LEN + 1], n = strlen(b);

    if (n > NAME_MAX_LEN)
        return SIZE_MAX;
    for (size_t i = 0; i <= n; i++)
        row[i] = i;
    for (; *a; a++) {
        size_t before = row[0]++;
        for (size_t i = 1; i <= n; i++) {
            size_t least = before + (*a != b[i - 1]);
            before = row[i];
            least = least < row[i] + 1 ? least : row[i] + 1;
            row[i] = least < row[i - 1] + 1 ? least : row[i - 1] + 1;
        }
    }
    return row[n];
}

static int refuse_name(const struct loader *l, const char *key, const char *where, struct err *e)
{
    const char *nearest = NULL;
    size_t least = FAR;

    for (const struct conf_row *row = l->table; row->name; row++) {
        size_t far = distance(key, row->name);
        nearest = far < least ? row->name : nearest;
        least = far < least ? far : least;
    }
    return nearest ? err_set(e, ERR_INVALID, "%s: there is no setting %s; there is %s", where, key,
                             nearest)
                   : err_set(e, ERR_INVALID, "%s: there is no setting %s (a typing error?)", where,
                             key);
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
    l->set[row - l->table] = true;
    return conf_set(row, l->settings, text, where, e);
}

/* ---- the file ---- */

static int set_from_line(const struct loader *l, char *line, const char *where, struct err *e)
{
    char *key = trim(line);
    if (!*key || *key == '#')
        return 0;
    if (strncmp(key, "export", 6) == 0 && (key[6] == ' ' || key[6] == '\t'))
        key = trim(key + 6);
    char *equals = strchr(key, '=');
    if (equals)
        *equals = '\0';
    key = trim(key);
    /* The line is not quoted: it may be a secret that lost its key. */
    if (!equals || !is_key(key))
        return err_set(e, ERR_INVALID, "%s: expected KEY=VALUE", where);
    const struct conf_row *row = conf_find(l->table, key);
    const struct conf_other *other = find_other(l, key);
    if (!row && !other && prefix_is_ours(l->table, key))
        return refuse_name(l, key, where, e);
    if (l->of_others ? !other : !row)
        return 0;
    char *value = unquote(trim(equals + 1));
    if (!value)
        return err_set(e, ERR_INVALID, "%s: %s: the quote is not closed", where, key);
    return l->of_others ? set_other(l, other, value, where, e) : set_ours(l, row, value, where, e);
}

/* text is cut into lines in place. */
static int load_text(const struct loader *l, const char *path, char *text, struct err *e)
{
    char *next = text;
    for (unsigned number = 1; next && *next; number++) {
        AUTO_FREE char *where = mem_printf("file %s, line %u", path, number);
        char *line = strsep(&next, "\n");
        if (set_from_line(l, line, where, e) < 0)
            return -1;
    }
    return 0;
}

static int load_file(const struct loader *l, const char *path, struct err *e)
{
    /* All room at once: a buffer that grows would leave copies of the secrets in freed memory. */
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX_BYTES);
    int result = -1;

    if (!buf_reserve(&text, FILE_MAX_BYTES))
        return err_set(e, ERR_LIMIT, "file %s: no memory for it", path);
    if (fdio_read_file(path, &text, e) == 0) {
        if (text.len > 0 && memchr(text.data, 0, text.len))
            err_set(e, ERR_INVALID, "file %s: is not text (it holds a NUL)", path);
        else
            result = load_text(l, path, text.data, e);
    }
    explicit_bzero(text.data, FILE_MAX_BYTES);
    return result;
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

int conf_load(const struct conf_source *from, void *settings, struct buf *notes, struct err *e)
{
    size_t n = 0;

    for (const struct conf_row *row = from->table; row->name; row++, n++)
        if (conf_set(row, settings, row->initial ? row->initial : "", "default", e) < 0)
            return -1;
    AUTO_FREE bool *set = mem_array(n, sizeof *set);
    struct loader l = {from->table, from->others, settings, set, notes, false};
    for (int others = 0; others < 2; others++) {
        l.of_others = others;
        if ((from->path && load_file(&l, from->path, e) < 0) || load_environment(&l, e) < 0)
            return -1;
    }
    return check_required(from->table, settings, from->path, e);
}
