/*
 * SANDBOX_INDEXES: where packages come from, and the hosts that an installation may reach for it.
 * Plain data without pointers, so that it can be copied.
 */
#ifndef SANDCGI_INDEX_HOSTS_H
#define SANDCGI_INDEX_HOSTS_H

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
