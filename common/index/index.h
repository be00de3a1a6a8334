/*
 * Packages: the ecosystems that they can be installed from, one per language (the installer is in
 * the language's runner image, runners/adding.md), and where they come from (SANDBOX_INDEXES).
 */
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_PACKAGES_MAX 20  /* of one installation */
#define INDEX_PACKAGE_MAX  256 /* bytes of one, with its version */

struct index_ecosystem {
    const char *language;
    const char *grammar; /* for people: what a package looks like */
    /* 0, or ERR_INVALID. Only a package's name with its version passes: no option, path, URL or
     * alias. */
    int (*check)(const char *package, struct err *e);
};

/* NULL: that language has none. */
const struct index_ecosystem *index_ecosystem_of(const char *language);
/* All of them; *n rows. */
const struct index_ecosystem *index_ecosystems(size_t *n);

/* Checks the length, then by the language's row; the error names argument and package. */
int index_check_package(const struct index_ecosystem *eco, const char *package, struct err *e);

/* ---- SANDBOX_INDEXES: plain data without pointers, so that it can be copied ---- */

#define INDEX_LANGUAGES_MAX 4
#define INDEX_HOSTS_MAX     8 /* of one language */
#define INDEX_HOST_NAME     253
#define INDEX_URL_MAX       1023
#define INDEX_LANGUAGE_NAME 32

struct index_host {
    char name[INDEX_HOST_NAME + 1]; /* lower case; an IPv6 address without its brackets */
    uint16_t port;
};

struct index_source {
    char language[INDEX_LANGUAGE_NAME + 1];
    char url[INDEX_URL_MAX + 1];
    struct index_host hosts[INDEX_HOSTS_MAX]; /* the URL's own first */
    size_t n_hosts;
};

struct index_settings {
    struct index_source items[INDEX_LANGUAGES_MAX];
    size_t n;
    bool private_ok; /* names may lead to private addresses */
};

/*
 * "python=https://host/path+host2+host3:8443,typescript=https://host": per language the index's
 * URL, and after + the further hosts that it serves files from. https only, no user or query in
 * the URL. ERR_INVALID names the setting and what is wrong with it. Leaves private_ok alone.
 */
int index_settings_parse(const char *text, struct index_settings *out, struct err *e);

/* NULL: none for that language. */
const struct index_source *index_source_of(const struct index_settings *s, const char *language);

/* "host", "host:port", "[v6]:port": the whole text; false when it is none. default_port 0: the port
 * must be there. */
bool index_host_parse(const char *text, size_t len, uint16_t default_port, struct index_host *out);

/* Whether the source's hosts have it, port included. */
bool index_source_allows(const struct index_source *s, const struct index_host *host);
