#include "config.h"

#include "common/index/ecosystem.h"

#include "common/base/auto.h"

#include <string.h>

static const struct index_ecosystem rows[] = {
    {"python", "name, name[extra] or name>=1.2,<2", index_check_python},
    {"typescript", "name, @scope/name or name@^1.2", index_check_npm},
};

const struct index_ecosystem *index_ecosystems(size_t *n)
{
    *n = ARRAY_LEN(rows);
    return rows;
}

const struct index_ecosystem *index_ecosystem_of(const char *language)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].language, language) == 0)
            return &rows[i];
    return NULL;
}

int index_check_package(const struct index_ecosystem *eco, const char *package, struct err *e)
{
    struct err why = ERR_INIT;
    size_t len = strlen(package);

    if (len > INDEX_PACKAGE_MAX)
        return err_set(e, ERR_LIMIT, "packages: one is %zu bytes; the limit is %d", len,
                       INDEX_PACKAGE_MAX);
    if (eco->check(package, &why) == 0)
        return 0;
    return err_set(e, ERR_INVALID, "packages: \"%.80s\" is no package of %s's index (%s): %s",
                   package, eco->language, eco->grammar, why.text);
}
