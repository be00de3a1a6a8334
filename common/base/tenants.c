#include "config.h"

#include "common/base/tenants.h"

#include "common/base/auto.h"
#include "common/base/conf.h"
#include "common/base/conf_line.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

#define COMMENTS   "#;"
#define OTHERS     "*"
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
#define WORD_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+#-, "
#define FIELD(f)   offsetof(struct tenant_limits, f)
#define DAY_S      86400

/* clang-format off */
static const struct conf_row keys[] = {
    {"concurrent_runs", CONF_NUMBER, FIELD(concurrent_runs), "0", 0, 1000, NULL, 0, NULL},
    {"runs_per_minute", CONF_NUMBER, FIELD(runs_per_minute), "0", 0, 100000, NULL, 0, NULL},
    {"run_seconds_per_day", CONF_NUMBER, FIELD(run_seconds_per_day), "0", 0, 1000 * DAY_S, NULL, 0, NULL},
    {"bytes", CONF_BYTES, FIELD(bytes), "0", 0, UINT64_MAX, NULL, 0, NULL},
    {"network", CONF_CHOICE, FIELD(network), "lan", 0, 0, "none|public|lan", 0, NULL},
    {"languages", CONF_STRING, FIELD(languages), "", 0, 1024, NULL, CONF_LIST, NULL},
    {"toolsets", CONF_STRING, FIELD(toolsets), "", 0, 1024, NULL, CONF_LIST, NULL},
    {0},
};
/* clang-format on */

static const struct tenant_limits no_limits = {
    .network = NETWORK_LAN, .languages = (char[]){""}, .toolsets = (char[]){""}};

struct parser {
    struct tenants *out;
    struct tenant_limits *section; /* NULL: none yet */
    bool has_others;
    const char *where;
    bool (*toolsets_ok)(const char *list);
    const char *toolset_names;
};

static void section_init(struct tenant_limits *s, const char *name)
{
    *s = no_limits;
    s->name = name ? mem_strdup(name) : NULL;
    s->languages = mem_strdup("");
    s->toolsets = mem_strdup("");
}

static void section_clear(struct tenant_limits *s)
{
    free(s->name);
    free(s->languages);
    free(s->toolsets);
}

void tenants_init(struct tenants *out)
{
    *out = (struct tenants){0};
    section_init(&out->others, NULL);
}

void tenants_clear(struct tenants *t)
{
    for (size_t i = 0; i < t->n; i++)
        section_clear(&t->items[i]);
    section_clear(&t->others);
    free(t->items);
    *t = (struct tenants){0};
}

/* ---- one line ---- */

static int section_add(struct parser *p, const char *name, struct err *e)
{
    struct tenants *t = p->out;

    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->items[i].name, name) == 0)
            return err_set(e, ERR_INVALID, "%s: [%s] is there twice; make it one section", p->where,
                           name);
    if (t->n == TENANTS_MAX)
        return err_set(e, ERR_INVALID, "%s: there may be %d tenants; remove sections", p->where,
                       TENANTS_MAX);
    t->items = mem_resize(t->items, t->n + 1, sizeof *t->items);
    p->section = &t->items[t->n++];
    section_init(p->section, name);
    return 0;
}

/* line: "[NAME]", trimmed. */
static int section_begin(struct parser *p, char *line, struct err *e)
{
    size_t len = strlen(line);
    char *name = line + 1;

    if (line[len - 1] != ']')
        return err_set(e, ERR_INVALID, "%s: the section must end with ]", p->where);
    line[len - 1] = '\0';
    name = conf_line_trim(name);
    if (strcmp(name, OTHERS) == 0 && p->has_others)
        return err_set(e, ERR_INVALID, "%s: [*] is there twice; make it one section", p->where);
    if (strcmp(name, OTHERS) == 0) {
        p->has_others = true;
        p->section = &p->out->others;
        return 0;
    }
    if (!*name || strlen(name) > TENANT_NAME_MAX || name[strspn(name, NAME_CHARS)])
        return err_set(e, ERR_INVALID,
                       "%s: a section is [*], or the name of a tenant: at most %d letters, digits, "
                       "'.', '_' and '-'",
                       p->where, TENANT_NAME_MAX);
    return section_add(p, name, e);
}

static int key_unknown(const struct parser *p, struct err *e)
{
    AUTO_BUF struct buf known = BUF_INIT(400);

    for (const struct conf_row *row = keys; row->name; row++)
        buf_addf(&known, "%s%s", row == keys ? "" : ", ", row->name);
    return err_set(e, ERR_INVALID, "%s: there is no such limit; there are: %s", p->where,
                   buf_str(&known));
}

static int check_words(const struct parser *p, const struct conf_row *row, const char *value,
                       struct err *e)
{
    if (row->offset == FIELD(languages) && value[strspn(value, WORD_CHARS)])
        return err_set(e, ERR_INVALID,
                       "%s: languages must be names separated by commas, e.g. python,bash",
                       p->where);
    if (row->offset == FIELD(toolsets) && *value && !p->toolsets_ok(value))
        return err_set(e, ERR_INVALID, "%s: toolsets must be of: %s", p->where, p->toolset_names);
    return 0;
}

static int key_set(struct parser *p, const struct conf_line *pair, struct err *e)
{
    const char *key = pair->name, *value = pair->value;
    const struct conf_row *row;

    if (!p->section)
        return err_set(e, ERR_INVALID,
                       "%s: a limit stands below the section of its tenant; put [TENANT] or [*] "
                       "above it",
                       p->where);
    if (!(row = conf_find(keys, key)))
        return key_unknown(p, e);
    unsigned bit = 1u << (row - keys);
    if (p->section->given & bit)
        return err_set(e, ERR_INVALID, "%s: %s is there twice in this section; keep one", p->where,
                       key);
    p->section->given |= bit;
    if (conf_set(row, p->section, value, p->where, e) < 0)
        return -1;
    return check_words(p, row, value, e);
}

static int parse_line(struct parser *p, char *line, struct err *e)
{
    struct conf_line pair;

    if (line[strspn(line, " \t")] == '[')
        return section_begin(p, conf_line_bare(line, COMMENTS), e);
    switch (conf_line_parse(line, COMMENTS, &pair)) {
    case CONF_LINE_EMPTY:
        return 0;
    case CONF_LINE_SET:
        return key_set(p, &pair, e);
    case CONF_LINE_NO_PAIR:
        return err_set(e, ERR_INVALID, "%s: expected [TENANT], or LIMIT = VALUE", p->where);
    case CONF_LINE_NO_QUOTE:
        return err_set(e, ERR_INVALID, "%s: %s: the quote is not closed", p->where, pair.name);
    }
    return 0;
}

/* ---- the whole ---- */

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct tenant_limits *)a)->name, ((const struct tenant_limits *)b)->name);
}

static void inherit_text(char **text, const char *from)
{
    free(*text);
    *text = mem_strdup(from);
}

/* What a section leaves out is as [*] has it. */
static void inherit(struct tenant_limits *s, const struct tenant_limits *from)
{
    for (const struct conf_row *row = keys; row->name; row++) {
        char *to = (char *)s + row->offset;
        const char *at = (const char *)from + row->offset;

        if (s->given & (1u << (row - keys)))
            continue;
        if (row->type == CONF_STRING)
            inherit_text((char **)(void *)to, *(char *const *)(const void *)at);
        else
            memcpy(to, at, row->type == CONF_CHOICE ? sizeof(int) : sizeof(uint64_t));
    }
}

int tenants_parse(const char *path, char *text, bool (*toolsets_ok)(const char *list),
                  const char *toolset_names, struct tenants *out, struct err *e)
{
    struct parser p = {.out = out, .toolsets_ok = toolsets_ok, .toolset_names = toolset_names};
    char *next = conf_line_skip_bom(text);

    for (unsigned number = 1; next && *next; number++) {
        AUTO_FREE char *where = mem_printf("%s:%u", path, number);

        p.where = where;
        if (parse_line(&p, strsep(&next, "\n"), e) < 0)
            return -1;
    }
    for (size_t i = 0; i < out->n; i++)
        inherit(&out->items[i], &out->others);
    if (out->n > 0)
        qsort(out->items, out->n, sizeof *out->items, compare);
    return 0;
}

int tenants_load(const char *path, bool (*toolsets_ok)(const char *list), const char *toolset_names,
                 struct tenants *out, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT(TENANTS_FILE_MAX);

    if (fdio_read_file(path, &text, e) < 0)
        return -1;
    if (text.len > 0 && memchr(text.data, 0, text.len))
        return err_set(e, ERR_INVALID, "%s:1: is not text (it holds a NUL)", path);
    return text.len == 0 ? 0 : tenants_parse(path, text.data, toolsets_ok, toolset_names, out, e);
}

/* ---- looking up ---- */

const struct tenant_limits *tenants_find(const struct tenants *t, const char *tenant)
{
    size_t low = 0, high = t ? t->n : 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(tenant, t->items[middle].name);

        if (order == 0)
            return &t->items[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return t ? &t->others : &no_limits;
}

bool tenants_list_has(const char *list, const char *word)
{
    const size_t len = strlen(word);

    list += strspn(list, ", ");
    if (!*list)
        return true;
    while (*list) {
        size_t n = strcspn(list, ", ");

        if (n == len && memcmp(list, word, n) == 0)
            return true;
        list += n;
        list += strspn(list, ", ");
    }
    return false;
}
