/*
 * Loads settings that a table describes: defaults, then a KEY=VALUE file, then the environment.
 */
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum conf_type {
    CONF_STRING,   /* char *            */
    CONF_NUMBER,   /* uint64_t          */
    CONF_BYTES,    /* uint64_t, parse_bytes        */
    CONF_DURATION, /* uint64_t ms, parse_duration_ms */
    CONF_MILLI,    /* uint64_t, parse_milli        */
    CONF_BOOL,     /* bool              */
    CONF_CHOICE,   /* int: index into choices      */
};

enum conf_flags {
    CONF_REQUIRED = 1 << 0, /* must not be empty */
    CONF_SECRET = 1 << 1,   /* never printed */
    CONF_AUTO = 1 << 2,     /* of amounts: "auto" is 0, whatever min says */
    CONF_LIST = 1 << 3,     /* of strings: words; blanks and commas between them become one comma */
    CONF_FIXED = 1 << 4,    /* not a setting any more: it keeps its default, and a line is noted */
};

struct conf_row {
    const char *name; /* KEY, as in the file and the environment */
    enum conf_type type;
    size_t offset;       /* into the settings struct */
    const char *initial; /* default as text; NULL or "" = empty */
    uint64_t min, max;   /* of numbers, in the unit of the field (max 0: none);
                            of strings that are not empty, their bytes (max 0: 4096) */
    const char *choices; /* CONF_CHOICE: words separated by '|' */
    unsigned flags;      /* enum conf_flags */
    const char *help; /* one line, for --help, the table in fcgi/settings.md and the manual page */
};

/* The table ends with a row whose name is NULL. */

/* A name that another server has for a setting, or for one that there is not here. */
struct conf_other {
    const char *name;
    const char *ours;    /* the row's name; NULL: there is none, */
    const char *instead; /* and what to know about that */
    const char *unit;    /* behind a bare number; NULL: none */
    const char *words;   /* "THEIRS=OURS" separated by '|', whatever the case; NULL: the same */
};

struct conf_source {
    const struct conf_row *table;
    const struct conf_other *others; /* ends as the table does; NULL: none */
    const char *path;                /* of a file; NULL: none */
    bool lenient;                    /* lines that are wrong, or of other names, are passed over */
    bool fixed_too;                  /* rows that are fixed can be set: for tests */
};

/*
 * Fills *settings (zeroed by the caller) from the defaults, then from the file, then from the
 * environment; then, where ours is not set, from the names of others in both. Lines have the
 * grammar of conf_line.h. A name in the file that the table does not know is an error when it
 * begins with a prefix of the table's names (up to the first '_') or is nearly one of them: the
 * nearest is told; other names are ignored. Notes (NULL: none; then there are no others) has a line
 * for each name of others, for each that is fixed, and for each in the environment that is nearly
 * ours. Errors name file, line, key and the allowed values, never the value of a secret. Strings
 * are allocated, never NULL, valid UTF-8 without control characters; conf_clear frees them, also
 * after a failure.
 */
int conf_load(const struct conf_source *from, void *settings, struct buf *notes, struct err *e);
void conf_clear(const struct conf_row *table, void *settings);

/* What the file says of that name, whatever it is; the last line counts. *out: to be freed; NULL:
 * it is not there. */
int conf_file_value(const char *path, const char *name, char **out, struct err *e);

/*
 * Sets one row from text. Messages begin with where ("file .env, line 3", "environment").
 * An empty text makes a string empty and resets every other type to its default.
 */
int conf_set(const struct conf_row *row, void *settings, const char *text, const char *where,
             struct err *e);

/* The row of that name, or NULL. */
const struct conf_row *conf_find(const struct conf_row *table, const char *name);

/* The current value in the form that conf_set reads; secrets as "(secret)" or "(empty)". */
void conf_format(const struct conf_row *row, const void *settings, struct buf *out);

/* The allowed values, to follow "must be": "a whole number from 1 to 9". */
void conf_describe(const struct conf_row *row, struct buf *out);

/* A part of the table, up to the first row of the next part. */
struct conf_group {
    const char *first; /* the name of its first row; NULL: the end */
    const char *title;
    const char *about; /* a sentence, or "" */
};

/* Markdown: for each group a heading and a table (name, default, meaning), then one of what is
 * fixed. The others leave that out. */
void conf_print_markdown(const struct conf_row *table, const struct conf_group *groups,
                         struct buf *out);
/* The same for a terminal. */
void conf_print_help(const struct conf_row *table, const struct conf_group *groups,
                     struct buf *out);
/* The same as the tagged paragraphs of a manual page (roff, macros of man). */
void conf_print_man(const struct conf_row *table, const struct conf_group *groups, struct buf *out);
