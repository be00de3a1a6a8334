#include "config.h"

#include "common/protocol/run_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool run_id_ok(const char *run_id)
{
    return strspn(run_id, "0123456789abcdef") == RUN_ID_LEN && !run_id[RUN_ID_LEN];
}

void psandbox_id_write(const char *run_id, char out[PSANDBOX_ID_LEN + 1])
{
    snprintf(out, PSANDBOX_ID_LEN + 1, PSANDBOX_ID_PREFIX "%s", run_id);
}

const char *psandbox_run_id(const char *psandbox_id)
{
    size_t prefix = sizeof PSANDBOX_ID_PREFIX - 1;

    if (strncmp(psandbox_id, PSANDBOX_ID_PREFIX, prefix) != 0 || !run_id_ok(psandbox_id + prefix))
        return NULL;
    return psandbox_id + prefix;
}

/* Digits of the sandbox's run id that its runs' begin with; the others count on from there. */
#define RUN_ID_SHARED (RUN_ID_LEN - 8)

void psandbox_run_id_write(const char *psandbox_run_id, uint32_t n, char out[RUN_ID_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    uint32_t last = 0;

    for (const char *at = psandbox_run_id + RUN_ID_SHARED; *at; at++)
        last = 16 * last + (uint32_t)(strchr(digits, *at) - digits);
    snprintf(out, RUN_ID_LEN + 1, "%.*s%08" PRIx32, RUN_ID_SHARED, psandbox_run_id, last + n);
}

bool psandbox_has_run(const char *psandbox_run_id, const char *run_id)
{
    return run_id_ok(run_id) && strncmp(psandbox_run_id, run_id, RUN_ID_SHARED) == 0;
}
