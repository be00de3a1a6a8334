/* What the doctor looks at around the site: nginx's files, the public name, streams, ports. Nothing
 * is changed. */
#pragma once

#include "common/fetch/site.h"
#include "fcgi/doctor/findings.h"
#include "fcgi/settings.h"

#include <stdbool.h>

/*
 * Does nginx accept its configuration, as far as it may be asked? Are nginx's files in folder those
 * that this version makes, and do they agree with the settings? folder NULL: where "sandcgi setup
 * nginx" puts them, if they are there. Behind another web server (SANDCGI_AUTH=token) there are
 * none.
 */
void web_look_at_nginx(const struct settings *s, const char *folder, struct findings *out);

/* Does a process that is no web server have the web server's group (SANDCGI_LISTEN_GROUP)? The
 * first one is said. */
void web_look_at_account(const struct settings *s, struct findings *out);

/* Has the host of PUBLIC_BASE_URL an address? False: it has none, which is said. */
bool web_look_at_name(const struct settings *s, struct findings *out);

/* Do events through PUBLIC_BASE_URL, which site is about, arrive at once? Listens with
 * MCP_API_TOKEN for some seconds; without one it says that it has not looked. */
void web_look_at_stream(const struct settings *s, const struct fetch_site *site,
                        struct findings *out);

/* Are the ports that the settings name free? For a server that does not run. */
void web_look_at_ports(const struct settings *s, struct findings *out);
