#include "runners/common/entry.h"

#include <getopt.h>
#include <string.h>

#define USAGE                                                                                      \
    "usage: entry [-C DIRECTORY] [-a [-p] [-e NAMES] [-l OBJECT] [-o OPTION] [-w FILES] "          \
    "[-x NAME=VALUE]] SCRIPT PROGRAM [ARGUMENT…]"

#define LIST_BREAKS ", "

static bool take_option(struct options *o, int letter)
{
    switch (letter) {
    case 'C':
        o->cwd = optarg;
        return true;
    case 'a':
        o->ahead = true;
        return true;
    case 'p':
        o->place = true;
        return true;
    case 'e':
        o->counts = optarg;
        return true;
    case 'l':
        o->object = optarg;
        return true;
    case 'o':
        o->option = optarg;
        return true;
    case 'w':
        o->files = optarg;
        return true;
    case 'x':
        o->extra = optarg;
        return strchr(optarg, '=') != NULL;
    default:
        return false;
    }
}

bool options_parse(struct options *o, int argc, char **argv)
{
    bool good = true;
    int letter;

    *o = (struct options){.cwd = "/data"};
    opterr = 0;
    while (good && (letter = getopt(argc, argv, "+C:ape:l:o:w:x:")) != -1)
        good = take_option(o, letter);
    if (!good || argc - optind < 2) {
        entry_say(0, USAGE);
        return false;
    }
    o->script = argv[optind];
    o->command = argv + optind + 1;
    return true;
}

bool options_list_has(const char *list, const char *word, size_t len)
{
    const char *at = list ? list + strspn(list, LIST_BREAKS) : "";

    while (*at) {
        size_t n = strcspn(at, LIST_BREAKS);
        bool start = at[n - 1] == '*';
        size_t same = start ? n - 1 : n;

        if ((start ? len >= same : len == same) && memcmp(at, word, same) == 0)
            return true;
        at += n;
        at += strspn(at, LIST_BREAKS);
    }
    return false;
}
