/* What a program has left outside of its working directory, where it is removed: results that a
 * user would miss, and not what tools leave by themselves. */
#include "runners/common/entry.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENTRIES_MAX 1000
#define DEPTH_MAX   4

/* Names of files, and of directories with all that is in them, that are not reported. */
static const char *const dull[] = {
    ".*",    /* caches */
    "tmp.*", /* mktemp */
    "pymp-*",
    "psm_*",
    "sem.*",
    "joblib_memmapping_folder_*",
    "torch_*",
    "pytest-of-*",
    "pip-*",
    "matplotlib-*",
    "fontconfig*",
    "__pycache__",
    "*.pyc",
    "node_modules",
    "npm-*",
    "bun-*",
    "bunx-*",
    "node-compile-cache",
    "v8-compile-cache*",
    "jest_*",
    "cc[A-Za-z0-9][A-Za-z0-9][A-Za-z0-9][A-Za-z0-9][A-Za-z0-9][A-Za-z0-9].[cos]", /* compilers */
    "*.o",
    "go-build*",
    "hsperfdata_*",
    "Rtmp*",
    "lu[0-9]*",
    "OSL_PIPE*",
    "magick-*",
    "*.lock",
    "*.pid",
    "*.sock",
};

/* Python's: "tmp" and eight of its letters, which no word has like that. */
static bool is_of_tempfile(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    const size_t before = strlen("tmp");

    return strncmp(name, "tmp", before) == 0 && strlen(name) == before + 8 &&
           strspn(name + before, letters) == 8 && name[before] != '_' &&
           strcspn(name + before, "0123456789_") < 8;
}

static bool is_dull(const char *name)
{
    if (is_of_tempfile(name))
        return true;
    for (size_t i = 0; i < sizeof(dull) / sizeof(dull[0]); i++) {
        if (fnmatch(dull[i], name, 0) == 0)
            return true;
    }
    return false;
}

/* The bytes of the character at p; 0: JSON cannot have it as it is. */
static size_t character_len(const unsigned char *p)
{
    static const struct {
        unsigned char first, last, low, high; /* of the first byte, of the second */
        size_t len;
    } kinds[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                 {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
                 {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
                 {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};

    if (*p < 0x80)
        return *p >= ' ' && *p != '"' && *p != '\\' && *p != 0x7f;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (*p < kinds[i].first || *p > kinds[i].last)
            continue;
        if (p[1] < kinds[i].low || p[1] > kinds[i].high)
            return 0;
        for (size_t at = 2; at < kinds[i].len; at++) {
            if ((p[at] & 0xc0) != 0x80)
                return 0;
        }
        return kinds[i].len;
    }
    return 0;
}

static bool is_text(const char *path)
{
    const unsigned char *p = (const unsigned char *)path;

    for (size_t len; *p; p += len) {
        len = character_len(p);
        if (len == 0)
            return false;
    }
    return true;
}

static void add(struct left *l, const char *path)
{
    if (l->n == LEFT_PATHS || strlen(path) > LEFT_PATH_MAX || !is_text(path)) {
        l->omitted++;
        return;
    }
    l->len += (size_t)snprintf(l->text + l->len, LEFT_MAX - l->len, "%s\"%s\"",
                               l->n ? "," : ",\"left\":[", path);
    l->n++;
}

/* fd is the directory's, and is closed. */
static void walk(int fd, const char *path, int depth, struct left *l)
{
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *d;
    char below[PATH_MAX];
    struct stat st;

    while (dir && l->seen < ENTRIES_MAX && (d = readdir(dir))) {
        l->seen++;
        if (is_dull(d->d_name) || fstatat(fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        snprintf(below, sizeof(below), "%s/%s", path, d->d_name);
        if (S_ISREG(st.st_mode) && st.st_size > 0)
            add(l, below);
        else if (S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
            walk(openat(fd, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), below,
                 depth + 1, l);
    }
    if (dir)
        closedir(dir);
}

void left_in(const char *path, struct left *l)
{
    walk(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), path, 1, l);
}

void left_end(struct left *l)
{
    if (l->n > 0)
        l->len += (size_t)snprintf(l->text + l->len, LEFT_MAX - l->len, "]");
    if (l->omitted > 0)
        snprintf(l->text + l->len, LEFT_MAX - l->len, ",\"leftOmitted\":%zu", l->omitted);
}
