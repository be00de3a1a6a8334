/*
 * The grammar of a line that sets a value, for all files of settings: NAME=VALUE, with blanks
 * around both, "export " in front of the name, quotes around the value, and a comment behind it.
 */
#pragma once

/* line is cut in place; what name and value point to lies in it. */
struct conf_line {
    char *name, *value;
};

enum conf_line_kind {
    CONF_LINE_EMPTY, /* blank, or a comment */
    CONF_LINE_SET,
    CONF_LINE_NO_PAIR, /* not NAME=VALUE */
    CONF_LINE_NO_QUOTE /* the closing quote is missing; name is set */
};

/*
 * Blanks are spaces, tabs and carriage returns. A comment begins with '#' (also ';', if comments
 * has it) at the beginning of the line, or behind a blank outside of quotes. One pair of single or
 * double quotes around the value is taken away, and nothing in between is special.
 */
enum conf_line_kind conf_line_parse(char *line, const char *comments, struct conf_line *out);

/* The text behind a byte order mark, which editors put before the first line. */
char *conf_line_skip_bom(char *text);

/* Cuts blanks off both ends, in place. */
char *conf_line_trim(char *text);

/* Cuts off a comment that stands behind a blank, and blanks off both ends, in place. */
char *conf_line_bare(char *text, const char *comments);
