/* The languages of the container: what the command line says of one, or of a folder with a file for
 * each. */
#include "runners/common/entry.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX 65536

#define USAGE                                                                                      \
    "usage: entry [-C DIRECTORY] [-a CHOOSER -A WORDS] [-w [-p] [-e NAMES] [-f FILES] [-l "        \
    "OBJECT] [-k WORDS] [-m MODULES] "                                                             \
    "[-n OPTION] [-o OPTION] [-s WORDS] [-t] [-x NAME=VALUE]] SCRIPT PROGRAM [ARGUMENT…], or "   \
    "entry [-C DIRECTORY] -L FOLDER -F LANGUAGE"

struct line {
    struct options options;
    char *folder; /* -L: that of the table, or NULL */
    char *first;  /* -F: its first language, or NULL */
};

/* What is wrong with the arguments; NULL: nothing. Strings are those of argv. */
static const char *line_parse(struct line *l, int argc, char **argv)
{
    struct options *o = &l->options;
    const struct {
        char letter;
        char **value;
    } texts[] = {{'a', &o->chooser},   {'A', &o->chosen},     {'C', &o->cwd},
                 {'e', &o->variables}, {'f', &o->files},      {'F', &l->first},
                 {'l', &o->object},    {'L', &l->folder},     {'k', &o->kept},
                 {'m', &o->modules},   {'n', &o->new_option}, {'o', &o->option},
                 {'s', &o->words},     {'x', &o->extra}};
    int letter;

    opterr = 0;
    optind = 0;
    while ((letter = getopt(argc, argv, "+a:A:C:e:f:F:k:l:L:m:n:o:ps:twx:")) != -1 &&
           letter != '?') {
        o->warm |= letter == 'w';
        o->template |= letter == 't';
        o->place |= letter == 'p';
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
            if (texts[i].letter == letter)
                *texts[i].value = optarg;
        }
    }
    if (letter == '?')
        return "an option that there is not, or one without its value";
    if (o->extra && !strchr(o->extra, '='))
        return "the value of -x is not NAME=VALUE";
    if (l->folder || l->first)
        return l->folder && l->first && optind == argc ? NULL
                                                       : "-L and -F stand together and alone";
    if (argc - optind < 2)
        return "SCRIPT or PROGRAM is missing";
    o->script = argv[optind];
    o->command = argv + optind + 1;
    return NULL;
}

/* ---- the table ---- */

/* The lines of the text, which is cut, with a name before them; NULL without memory. */
static char **lines_of(char *name, char *text, int *n)
{
    size_t most = 2;
    char **lines;

    for (const char *at = text; *at; at++)
        most += *at == '\n';
    lines = calloc(most + 1, sizeof(*lines));
    if (!lines)
        return NULL;
    lines[0] = name;
    *n = 1;
    for (char *line; (line = strsep(&text, "\n"));) {
        if (line[0] != '\0' && line[0] != '#')
            lines[(*n)++] = line;
    }
    return lines;
}

/* Reads the file of a language, which stays in memory. What is wrong with it; NULL: nothing. */
static const char *file_read(struct line *l, const char *path, const char *name)
{
    static char text[FILE_MAX];
    char *own_name = strdup(name), *own_text, **lines;
    const char *wrong;
    int n = 0;

    if (!read_text(path, text, sizeof(text)))
        return strerror(errno);
    if (strlen(text) == sizeof(text) - 1)
        return "it is too long";
    own_text = strdup(text);
    lines = own_name && own_text ? lines_of(own_name, own_text, &n) : NULL;
    if (!lines)
        return "no memory for it";
    wrong = line_parse(l, n, lines);
    l->options.name = own_name;
    return wrong || !l->folder ? wrong : "it names a table";
}

/* Adds the language of that name; what the command line says holds for it, too. */
static bool language_add(struct languages *all, const struct line *line, const char *name)
{
    struct line own = {.options = line->options};
    bool first = strcmp(name, line->first) == 0;
    char path[PATH_MAX];
    const char *wrong = "it is one too many";

    snprintf(path, sizeof(path), "%s/%s", line->folder, name);
    if (first || all->n < LANGUAGES_MAX)
        wrong = file_read(&own, path, name);
    if (wrong)
        entry_error(0, "%s: %s", path, wrong);
    else
        all->items[first ? 0 : all->n++] = own.options;
    return !wrong;
}

/* Reads the folder; the place of the first language is there. */
static bool table_read(struct languages *all, const struct line *line)
{
    DIR *dir = opendir(line->folder);
    const struct dirent *d;
    bool good = dir != NULL;

    if (!dir)
        entry_error(errno, "%s", line->folder);
    all->n = 1;
    while (good && (d = readdir(dir))) {
        if (d->d_name[0] != '.')
            good = language_add(all, line, d->d_name);
    }
    if (dir)
        closedir(dir);
    if (good && !all->items[0].name)
        entry_error(0, "%s: there is no %s", line->folder, line->first);
    return good && all->items[0].name;
}

bool languages_read(struct languages *l, int argc, char **argv)
{
    struct line line = {.options = l->items[0]};

    if (line_parse(&line, argc, argv)) {
        entry_error(0, USAGE);
        return false;
    }
    if (line.folder)
        return table_read(l, &line);
    l->items[0] = line.options;
    return true;
}

const struct options *languages_find(const struct languages *l, const char *name, size_t len)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *own = l->items[i].name;

        if (own && strlen(own) == len && memcmp(own, name, len) == 0)
            return &l->items[i];
    }
    return NULL;
}
