#include "config.h"

#include "fcgi/command_line.h"

#include "common/base/conf_names.h"
#include "fcgi/settings.h"

#include <stdio.h>
#include <string.h>

#define EXIT_WORDS 2
#define FAR        3 /* letters that differ: another word */

const struct command *command_find(const struct command *table, const char *name)
{
    name += strncmp(name, "--", 2) == 0 ? 2 : 0;
    for (; table->name; table++)
        if (strcmp(name, table->name) == 0)
            return table;
    return NULL;
}

static bool is_of(const struct option *o, const struct command *command)
{
    const size_t len = strlen(command->name);

    for (const char *at = o->commands; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == len && strncmp(at, command->name, len) == 0)
            return true;
    return false;
}

const struct option *option_find(const struct option *table, const struct command *command,
                                 const char *name)
{
    const bool operand = *name != '-' || !name[1];

    for (; table->name; table++)
        if (is_of(table, command) &&
            (operand ? *table->name != '-' : strcmp(name, table->name) == 0))
            return table;
    return NULL;
}

bool command_asks_help(const struct command *command, char *const *words)
{
    for (; !(command->kind & OWN_HELP) && *words; words++)
        if (strcmp(*words, "--help") == 0 || strcmp(*words, "-h") == 0)
            return true;
    return false;
}

/* ---- help ---- */

static void add_group(const struct command *table, unsigned kind, const char *title,
                      struct buf *out)
{
    buf_addf(out, "\n%s:\n", title);
    for (; table->name; table++)
        if (table->kind & kind)
            buf_addf(out, "  %-9s %s\n", table->name, table->help);
}

static void add_options(const struct option *table, const struct command *of, struct buf *out)
{
    for (; table->name; table++)
        if (is_of(table, of))
            buf_addf(out, "  %-15s %-6s  %s\n", table->name, table->value ? table->value : "",
                     table->help);
}

void command_help(const struct command *commands, const struct option *options,
                  const struct command *of, struct buf *out)
{
    if (of) {
        buf_addf(out, "Usage: sandcgi %s%s%s [OPTION ...]\n\n%s: %s.\n\n", of->name,
                 *of->operands ? " " : "", of->operands, of->name, of->help);
        if (of->run || of->kind & OWN_WORDS)
            buf_addf(out, "  %-15s %-6s  %s\n", "--config", "FILE", "the settings");
        add_options(options, of, out);
        return;
    }
    buf_add_str(out, "Usage: sandcgi COMMAND [--config FILE] [OPTION ...]\n");
    add_group(commands, EVERYDAY, "Everyday commands", out);
    add_group(commands, ADMINISTRATION, "Administration", out);
    buf_add_str(out, "\nOptions: sandcgi COMMAND --help. Settings (lines KEY=VALUE in FILE, which "
                     "the environment\noverrides): sandcgi help settings. FILE is by default "
                     "$SANDCGI_CONFIG; or " SETTINGS_FILE ",\nif it is there, but not for "
                     "serve, stdio and cgi.\n");
}

/* ---- wrong words ---- */

int command_refuse(const struct command *table, const char *name)
{
    const struct command *nearest = NULL;
    size_t least = FAR;

    for (; table->name; table++) {
        const size_t far = conf_names_distance(name, table->name);
        nearest = far < least && !(table->kind & INNER) ? table : nearest;
        least = far < least ? far : least;
    }
    if (nearest)
        fprintf(stderr, "sandcgi: there is no command %.40s; there is %s; see sandcgi --help\n",
                name, nearest->name);
    else
        fprintf(stderr, "sandcgi: there is no command %.40s; see sandcgi --help\n", name);
    return EXIT_WORDS;
}

int option_refuse(const struct command *command, const char *word, const struct option *option)
{
    fprintf(stderr,
            option && *option->name == '-'
                ? "sandcgi: %2$s of %1$s needs a value; see sandcgi %1$s --help\n"
                : "sandcgi: %1$s does not take %2$.40s; see sandcgi %1$s --help\n",
            command->name, word);
    return EXIT_WORDS;
}
