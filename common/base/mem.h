/*
 * Allocation of bounded sizes: the caller checks sizes that a client chooses against a named limit.
 * Out of memory ends the process with MEM_EXIT_STATUS; its parent restarts it.
 */
#pragma once

#include <stddef.h>

#define MEM_EXIT_STATUS 70

void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull)); /* zeroed */
/* Not zeroed: for large buffers that are mostly unused. */
void *mem_alloc_raw(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_array(size_t n, size_t size)
    __attribute__((malloc, returns_nonnull)); /* zeroed, overflow-checked */
void *mem_shared(size_t size)
    __attribute__((malloc, returns_nonnull)); /* zeroed, shared with later children; munmap */
void *mem_resize(void *p, size_t n, size_t size)
    __attribute__((returns_nonnull)); /* overflow-checked */
char *mem_strdup(const char *s) __attribute__((malloc, returns_nonnull, nonnull));
/* Copies len bytes and adds a NUL. */
char *mem_strndup(const char *s, size_t len) __attribute__((malloc, returns_nonnull));
char *mem_printf(const char *fmt, ...)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));

/* Returns what a large request has freed to the kernel; cheap when there is little. */
void mem_give_back(void);
/* Gives all of it back: for a process of which there are many. */
void mem_trim(void);
