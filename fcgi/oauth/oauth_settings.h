/* The settings SANDCGI_OAUTH…: what they mean together. */
#pragma once

#include "common/base/err.h"

#include <stdbool.h>

struct oauth_settings {
    /* read from the table of settings */
    char *audience, *tenant, *scope_names, *limits, *introspect, *client_file;
    /* derived */
    char *check;        /* FastCGI socket on which nginx asks about access tokens; owned */
    const char *issuer; /* borrowed */
    bool builtin, audience_is_own;
    unsigned scopes; /* of enum scope, of scope_names */
};

/* Other settings that they depend on; borrowed for as long as those live. */
struct oauth_context {
    const char *oauth, *public_base_url, *broker, *tenants_file;
};

/* Fills in the defaults that depend on other settings, and what is derived. Without SANDCGI_OAUTH
 * the others must be empty. *e: one line that says what to change. */
int oauth_settings_check(struct oauth_settings *a, const struct oauth_context *c, struct err *e);

/* https, or http to this very machine: for tests, and for an issuer behind the same web server. */
bool oauth_url_is_ok(const char *url);
/* Is it http (and so on this machine)? */
bool oauth_url_is_plain(const char *url);
