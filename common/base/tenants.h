/*
 * Limits per tenant, from a file of sections: [NAME], and [*] for what all other sections leave
 * out and for all other tenants. Plain data; who enforces which is said at each field.
 */
#pragma once

#include "common/base/err.h"
#include "common/base/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TENANTS_MAX      4096 /* sections */
#define TENANTS_FILE_MAX (512u * 1024)
#define TENANT_NAME_MAX  128

/* 0 and "": no limit besides the server's. */
struct tenant_limits {
    uint64_t concurrent_runs;     /* scheduler/admission.h, tenant_books.h */
    uint64_t runs_per_minute;     /* tenant_books.h, as the next */
    uint64_t run_seconds_per_day; /* of programs, by the wall clock; a day of UTC */
    uint64_t bytes;               /* of all its conversations' files (sandbox/state/quota.h) */
    int network;                  /* enum network_tier: the most (broker) */
    char *languages;              /* separated by commas (broker) */
    char *toolsets;               /* the same (workers) */
    char *name;                   /* NULL: of all others */
    unsigned given;               /* bit of each key that the section has */
};

struct tenants {
    struct tenant_limits *items; /* by name */
    size_t n;
    struct tenant_limits others;
};

/* *out is zeroed by the caller, and has no limits then (network: the most). */
void tenants_init(struct tenants *out);
void tenants_clear(struct tenants *t);

/*
 * Reads the file into *out, which tenants_init has made. The first mistake is the error, one line
 * "PATH:LINE: ..." that says what to change. toolsets_ok decides on the value of "toolsets";
 * toolset_names lists the names for the error's text.
 */
int tenants_load(const char *path, bool (*toolsets_ok)(const char *list), const char *toolset_names,
                 struct tenants *out, struct err *e);
/* The same of a text, which is cut into lines in place. */
int tenants_parse(const char *path, char *text, bool (*toolsets_ok)(const char *list),
                  const char *toolset_names, struct tenants *out, struct err *e);

/* The limits of a tenant; t NULL: none. Valid as long as t. */
const struct tenant_limits *tenants_find(const struct tenants *t, const char *tenant);

/* Is the word one of a list that is separated by commas? An empty list has all. */
bool tenants_list_has(const char *list, const char *word);
