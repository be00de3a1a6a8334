#include "config.h"

#include "common/tools/toolset.h"

#include "common/base/auto.h"
#include "common/tools/profiles/profiles.h"

#include <string.h>

static const struct toolset *const theirs[TOOLSETS] = {
    [TOOLSET_RUNNER] = &profile_runner,
    [TOOLSET_SESSION] = &profile_session,
    [TOOLSET_CONTAINER] = &profile_container,
    [TOOLSET_INTERPRETER] = &profile_interpreter,
};

int toolset_find(const char *name)
{
    const char *at = TOOLSET_NAMES;

    for (int i = 0; i < TOOLSETS; i++) {
        size_t len = strcspn(at, "|");

        if (strlen(name) == len && memcmp(at, name, len) == 0)
            return i;
        at += len + 1;
    }
    return -1;
}

const struct toolset *toolset_theirs(int number)
{
    return theirs[number];
}
