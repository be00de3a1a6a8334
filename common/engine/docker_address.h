/* Where an engine listens, in the form that libcurl wants. */
#ifndef SANDCGI_ENGINE_DOCKER_ADDRESS_H
#define SANDCGI_ENGINE_DOCKER_ADDRESS_H

#include "common/base/err.h"
#include "common/engine/engine.h"

#include <stdbool.h>

struct docker_address {
    char *host;      /* as configured, for messages */
    char *unix_path; /* NULL: tcp */
    char *base;      /* "http://localhost", "https://engine:2376" */
    bool tls;
    char *ca, *cert, *key; /* NULL: libcurl's default CA store, no client certificate */
};

/*
 * ERR_INVALID names what is wrong. tls_verify or a cert_path turn TLS on for tcp; the server's
 * certificate is always verified then, against cert_path/ca.pem.
 */
int docker_address_init(struct docker_address *a, const struct engine_address *from, struct err *e);
void docker_address_clear(struct docker_address *a);

#endif
