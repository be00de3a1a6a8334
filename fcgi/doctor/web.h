/* What the doctor looks at around the site: nginx's files, the public name, ports. Nothing is
 * changed. */
#pragma once

#include "fcgi/doctor/findings.h"
#include "fcgi/settings.h"

#include <stdbool.h>

/*
 * Are nginx's files in folder those that this version makes, and do they agree with the settings?
 * folder NULL: where "sandcgi setup nginx" puts them, if they are there. Behind another web server
 * (SANDCGI_AUTH=token) there are none.
 */
void web_look_at_nginx(const struct settings *s, const char *folder, struct findings *out);

/* Has the host of PUBLIC_BASE_URL an address? False: it has none, which is said. */
bool web_look_at_name(const struct settings *s, struct findings *out);

/* Are the ports that the settings name free? For a server that does not run. */
void web_look_at_ports(const struct settings *s, struct findings *out);
