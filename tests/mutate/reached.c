/*
 * Which basic blocks of a program are executed: gcc calls this at each
 * (-fsanitize-coverage=trace-pc). The program's map is a file in REACHED_FOLDER, with the program's
 * path for a name, % for /; there the byte of each address that the program came by becomes 1. It
 * stays when a process is killed.
 */
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern const char __ehdr_start[];
void __sanitizer_cov_trace_pc(void);

static unsigned char *map;
static size_t map_size;

__attribute__((constructor)) static void find_map(void)
{
    char exe[PATH_MAX] = "", path[2 * PATH_MAX];
    struct stat st;

    if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0)
        return;
    for (char *c = exe; *c; c++)
        if (*c == '/')
            *c = '%';
    snprintf(path, sizeof path, "%s/%s", REACHED_FOLDER, exe);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *found = fstat(fd, &st) < 0
                      ? MAP_FAILED
                      : mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (found != MAP_FAILED) {
        map_size = (size_t)st.st_size;
        map = found;
    }
    close(fd);
}

__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc(void)
{
    size_t at = (size_t)((const char *)__builtin_return_address(0) - __ehdr_start);

    if (at < map_size)
        map[at] = 1;
}
