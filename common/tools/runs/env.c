#include "config.h"

#include "common/tools/runs/env.h"

#include "common/base/buf.h"
#include "common/mcp/features/content.h"

#include <string.h>

#define LOADER "it changes how programs are loaded"
#define LOOKUP "it changes where programs or their settings are found"
#define SHELL  "it changes how the shell starts"
#define PYTHON "it changes how Python starts"
#define SCRIPT "it changes how the JavaScript runtime starts"
#define OTHER  "it changes how the interpreter starts"
#define LIBC   "it changes the C library's inner workings"

struct rule {
    const char *name; /* a trailing * stands for anything */
    const char *why;
};

static const struct rule denied[] = {
    {"LD_*", LOADER},
    {"DYLD_*", LOADER},
    {"GCONV_PATH", LOADER},
    {"GETCONF_DIR", LOADER},
    {"OPENSSL_CONF", LOADER},
    {"OPENSSL_ENGINES", LOADER},
    {"OPENSSL_MODULES", LOADER},
    {"GLIBC_TUNABLES", LIBC},
    {"MALLOC_*", LIBC},
    {"LOCPATH", LIBC},
    {"NLSPATH", LIBC},
    {"HOSTALIASES", LIBC},
    {"LOCALDOMAIN", LIBC},
    {"RES_OPTIONS", LIBC},
    {"RESOLV_HOST_CONF", LIBC},
    {"PATH", LOOKUP},
    {"HOME", LOOKUP},
    {"CDPATH", SHELL},
    {"ENV", SHELL},
    {"IFS", SHELL},
    {"PS4", SHELL},
    {"PROMPT_COMMAND", SHELL},
    {"SHELLOPTS", SHELL},
    {"BASHOPTS", SHELL},
    {"BASH_*", SHELL},
    {"GLOBIGNORE", SHELL},
    {"PYTHON*", PYTHON},
    {"BUN_*", SCRIPT},
    {"NODE_*", SCRIPT},
    {"NPM_*", SCRIPT},
    {"npm_*", SCRIPT},
    {"DENO_*", SCRIPT},
    {"TS_NODE_*", SCRIPT},
    {"PERL5*", OTHER},
    {"PERLLIB", OTHER},
    {"PERLIO*", OTHER},
    {"RUBYOPT", OTHER},
    {"RUBYLIB", OTHER},
    {"LUA_*", OTHER},
    {"PHPRC", OTHER},
    {"PHP_INI_SCAN_DIR", OTHER},
    {"R_*", OTHER},
    {"JAVA_TOOL_OPTIONS", OTHER},
    {"JDK_JAVA_OPTIONS", OTHER},
    {"_JAVA_OPTIONS", OTHER},
    {"CLASSPATH", OTHER},
};

/* Given by the server, whatever the caller says: not an error, since clients written for other
 * servers send them. */
static const char *const ours[] = {"FILE_BASE_URL"};

static bool matches(const char *pattern, const char *name)
{
    size_t len = strlen(pattern);

    if (pattern[len - 1] == '*')
        return strncmp(pattern, name, len - 1) == 0;
    return strcmp(pattern, name) == 0;
}

static bool is_ours(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        if (strcmp(ours[i], name) == 0)
            return true;
    }
    return false;
}

static bool is_name_char(char c, bool first)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           (!first && c >= '0' && c <= '9');
}

static bool is_ordinary(const char *name)
{
    if (name[0] == '\0' || strlen(name) > ENV_NAME_MAX)
        return false;
    for (const char *c = name; *c; c++) {
        if (!is_name_char(*c, c == name))
            return false;
    }
    return true;
}

static int fail_name(const char *name, struct err *e)
{
    AUTO_BUF struct buf shown = BUF_INIT(3 * ENV_NAME_MAX);

    content_clean_name(name, &shown);
    return err_set(
        e, ERR_INVALID,
        "environment variable '%.160s' is not a valid name: letters, digits and '_', not "
        "starting with a digit, at most %d characters",
        buf_str(&shown), ENV_NAME_MAX);
}

static int check_name(const char *name, struct err *e)
{
    if (!is_ordinary(name))
        return fail_name(name, e);
    for (size_t i = 0; i < ARRAY_LEN(denied); i++) {
        if (matches(denied[i].name, name))
            return err_set(e, ERR_DENIED, "environment variable '%s' cannot be set: %s", name,
                           denied[i].why);
    }
    return 0;
}

int env_filter(struct arg_map *map, struct err *e)
{
    size_t kept = 0;

    for (size_t i = 0; i < map->n; i++) {
        if (check_name(map->items[i].name, e) < 0)
            return -1;
        if (!is_ours(map->items[i].name))
            map->items[kept++] = map->items[i];
    }
    map->n = kept;
    return 0;
}
