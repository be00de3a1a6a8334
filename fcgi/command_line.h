/* The words of the command line: which commands and options there are, and their help. */
#pragma once

#include "common/base/buf.h"

#include <stdbool.h>

enum command_kind {
    EVERYDAY = 1,       /* the groups of the help; */
    ADMINISTRATION = 2, /* others are not shown there */
    INNER = 4,
    OWN_WORDS = 8,   /* parses the words behind it itself, */
    OWN_HELP = 16,   /* and --help among them */
    NEEDS_FILE = 32, /* has settings of its own: no default file */
};

/* A table of these ends with a row whose name is NULL. */
struct command {
    const char *name;
    unsigned kind; /* enum command_kind */
    int (*run)(const char *config_path);
    int (*run_plain)(void); /* without settings; one of both */
    const char *operands;   /* "FILE"; "": none */
    const char *help;
};

/* Likewise. */
struct option {
    const char *commands; /* names, separated by blanks */
    const char *name;     /* "--json"; "FILE": the operand's */
    const char *value;    /* what it is called in the help; NULL: a flag */
    const char **text;    /* where it goes, */
    bool *flag;           /* or this */
    const char *help;
};

/* NULL: there is none. "--version" finds version. */
const struct command *command_find(const struct command *table, const char *name);
/* Of the command; for a word that is no option, and for "-", that of its operand. NULL: none. */
const struct option *option_find(const struct option *table, const struct command *command,
                                 const char *name);

/* Is --help among the words behind the command, which does not answer that itself? */
bool command_asks_help(const struct command *command, char *const *words);
/* The help of one command; NULL: the list of them. */
void command_help(const struct command *commands, const struct option *options,
                  const struct command *of, struct buf *out);

/* Say on standard error what is wrong, with the nearest name. Return the exit status. option: lacks
 * its value; NULL: there is no such option. */
int command_refuse(const struct command *table, const char *name);
int option_refuse(const struct command *command, const char *word, const struct option *option);
