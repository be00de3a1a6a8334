#include "config.h"

#include "fcgi/commands.h"

#include "common/base/err.h"
#include "common/base/mem.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Path of this program, for the script; false when the kernel does not tell. */
static bool find_self(char self[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", self, PATH_MAX - 1);

    if (len <= 0)
        return false;
    self[len] = '\0';
    return true;
}

char *script_find(const char *name)
{
    char self[PATH_MAX] = "";

    (void)find_self(self);
    const char *slash = strrchr(self, '/');
    char *path = mem_printf("%.*s/../%s", slash ? (int)(slash - self) : 0, self, name);
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    return mem_printf("%s/%s", PKGLIBEXECDIR, name);
}

static size_t count_words(char *const *words)
{
    size_t n = 0;

    while (words[n])
        n++;
    return n;
}

int setup_run(char *const *words)
{
    char self[PATH_MAX] = "";
    size_t n = count_words(words);

    if (find_self(self))
        setenv("SANDCGI_PROGRAM", self, 1);
    char *script = script_find("nginx/setup-nginx.sh");
    char **arguments = mem_array(n + 2, sizeof *arguments);
    arguments[0] = script;
    memcpy(arguments + 1, words, n * sizeof *words);
    execv(script, arguments);
    fprintf(stderr, "sandcgi: cannot run %s: %s; \"make install\" puts it there\n", script,
            strerror(errno));
    free(arguments);
    free(script);
    return 1;
}
