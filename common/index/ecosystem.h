/*
 * The ecosystems that packages can be installed from: how their packages are named. One row per
 * language; what installs them is in the language's runner image (runners/README.md).
 */
#ifndef SANDCGI_INDEX_ECOSYSTEM_H
#define SANDCGI_INDEX_ECOSYSTEM_H

#include "common/base/err.h"

#include <stddef.h>

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

/* PyPI: PEP 508's name, extras and version specifiers. */
int index_check_python(const char *package, struct err *e);
/* npm: name or @scope/name, then @ and a version, range or tag. */
int index_check_npm(const char *package, struct err *e);

#endif
