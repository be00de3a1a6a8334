/* Which build this program is (service/release/version.sh). */
#pragma once

/* "0.3.0" of a release, "0.3.0+20261128T201500.1480.g0123456789" later. */
extern const char sandcgi_version[];
