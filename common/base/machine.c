#include "config.h"

#include "common/base/machine.h"

#include "common/base/buf.h"
#include "common/base/fdio.h"
#include "common/base/mem.h"
#include "common/base/parse.h"

#include <string.h>

#define FILE_MAX_BYTES 65536

/* Version 2, then 1. */
static const struct source {
    const char *max, *current, *stat, *inactive;
} sources[] = {
    {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat",
     "inactive_file "},
    {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
     "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file "},
};

/* The number behind the line's beginning. */
static bool read_number(const char *root, const char *name, const char *begins, uint64_t *out)
{
    AUTO_FREE char *path = mem_printf("%s%s", root, name);
    AUTO_BUF struct buf text = BUF_INIT(FILE_MAX_BYTES);
    const char *line;
    struct err e = ERR_INIT;

    if (fdio_read_file(path, &text, &e) < 0)
        return false;
    line = buf_str(&text);
    while (line && strncmp(line, begins, strlen(begins)) != 0)
        if ((line = strchr(line, '\n')))
            line++;
    return line &&
           parse_leading_u64(line + strlen(begins) + strspn(line + strlen(begins), " "), out) == 0;
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

static void apply_limit(const char *root, const struct source *s, struct machine_memory *m)
{
    uint64_t max, used, inactive = 0;

    if (!read_number(root, s->max, "", &max) || max >= m->total ||
        !read_number(root, s->current, "", &used))
        return; /* "max" is no number */
    read_number(root, s->stat, s->inactive, &inactive);
    m->total = max;
    if (m->available > less(max, less(used, inactive)))
        m->available = less(max, less(used, inactive));
}

bool machine_memory_look(const char *root, struct machine_memory *out)
{
    if (!read_number(root, "/proc/meminfo", "MemTotal:", &out->total) ||
        !read_number(root, "/proc/meminfo", "MemAvailable:", &out->available))
        return false;
    out->total *= 1024;
    out->available *= 1024;
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        apply_limit(root, &sources[i], out);
    return true;
}
