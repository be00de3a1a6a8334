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

bool program_find(char out[PATH_MAX])
{
    static const char deleted[] = " (deleted)"; /* another file lies there now */
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    size_t len = n < 0 ? 0 : (size_t)n;

    out[len] = '\0';
    if (len >= sizeof deleted && strcmp(out + len - (sizeof deleted - 1), deleted) == 0)
        out[len - (sizeof deleted - 1)] = '\0';
    return len > 0;
}

char *script_find(const char *name)
{
    char self[PATH_MAX] = "";

    (void)program_find(self);
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

    if (program_find(self))
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
