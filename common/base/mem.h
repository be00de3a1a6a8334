/*
 * Allocation of small, bounded things. Out of memory ends the process: workers and run children are
 * supervised and restarted. Sizes that a client chooses are bounded by a named limit before they
 * come here.
 */
#ifndef SANDCGI_BASE_MEM_H
#define SANDCGI_BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull)); /* zeroed */
/* Not zeroed: for buffers of which most runs use little, so that the rest is never touched. */
void *mem_alloc_raw(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_array(size_t n, size_t size)
    __attribute__((malloc, returns_nonnull)); /* zeroed, overflow-checked */
void *mem_resize(void *p, size_t n, size_t size)
    __attribute__((returns_nonnull)); /* overflow-checked */
char *mem_strdup(const char *s) __attribute__((malloc, returns_nonnull, nonnull));
/* Copies len bytes and adds a NUL. */
char *mem_strndup(const char *s, size_t len) __attribute__((malloc, returns_nonnull));
char *mem_printf(const char *fmt, ...)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

#endif
