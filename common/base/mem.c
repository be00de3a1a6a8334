#include "config.h"

#include "common/base/mem.h"

#ifdef HAVE_MALLINFO2
#include <malloc.h>
#endif
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEPT_FREE_MAX (2u * 1024 * 1024) /* what the next request may use again */

static void die(const char *why)
{
    /* Nothing that allocates: neither stdio nor the log. */
    ssize_t n = write(STDERR_FILENO, why, strlen(why));

    (void)n;
    _exit(MEM_EXIT_STATUS);
}

static size_t product(size_t n, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(n, size, &total) || total > PTRDIFF_MAX)
        die("error: a size is beyond what memory can hold\n");
    return total ? total : 1;
}

static void *checked(void *p)
{
    if (!p)
        die("error: out of memory\n");
    return p;
}

void *mem_alloc(size_t size)
{
    return checked(calloc(1, product(1, size)));
}

void *mem_shared(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return checked(p == MAP_FAILED ? NULL : p);
}

void *mem_alloc_raw(size_t size)
{
    return checked(malloc(product(1, size)));
}

void *mem_array(size_t n, size_t size)
{
    return checked(calloc(1, product(n, size)));
}

void *mem_resize(void *p, size_t n, size_t size)
{
    return checked(realloc(p, product(n, size)));
}

char *mem_strdup(const char *s)
{
    return mem_strndup(s, strlen(s));
}

char *mem_strndup(const char *s, size_t len)
{
    if (len >= PTRDIFF_MAX)
        die("error: a size is beyond what memory can hold\n");
    char *copy = checked(malloc(len + 1));
    if (len > 0)
        memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

char *mem_printf(const char *fmt, ...)
{
    char *text;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    return checked(n < 0 ? NULL : text);
}

void mem_trim(void)
{
#ifdef HAVE_MALLINFO2
    malloc_trim(0);
#endif
}

void mem_give_back(void)
{
#ifdef HAVE_MALLINFO2
    if (mallinfo2().fordblks > KEPT_FREE_MAX)
        mem_trim();
#endif
}
