/* Jobs that may last: how many of them everybody may have. The broker takes no connections while it
 * has JOBS_MAX jobs (server.c), so those that do not end soon by themselves must never be all of
 * them, nor may one tenant have all of a kind. */
#include "config.h"

#include "common/base/mem.h"
#include "common/broker/broker.h"
#include "common/rpc/json.h"
#include "common/sandbox/state/state.h"

#include <stdio.h>
#include <string.h>

/* Together they stay below JOBS_MAX. */
static const struct {
    const char *name;      /* as its owner knows several of them */
    size_t server, tenant; /* most at the same time */
} kinds[JOB_LIMIT_COUNT] = {
    [JOB_LIMIT_DELETION] = {"conversations are being deleted", 12, 6},
    [JOB_LIMIT_IMPORT] = {"files are being fetched", 8, 4},
    [JOB_LIMIT_PACK] = {"archives are being downloaded", 24, 8},
    [JOB_LIMIT_UNPACK] = {"archives are being unpacked", 8, 4},
};

static enum job_limit kind_of(const json_t *head)
{
    return op_row(op_of(head))->limit;
}

/* Whose job it is; heap. A link to an archive names a sandbox, whose record names the tenant; one
 * without a record counts as somebody of its own. */
static char *tenant_of(const struct broker *b, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *subject = json_get_string(head, "subject");
    AUTO_STATE_RECORD struct state_record record = STATE_RECORD_INIT;
    struct err e = ERR_INIT;
    char sandbox_dir[SANDBOX_NAME_LEN + 1];

    if (tenant)
        return mem_strdup(tenant);
    snprintf(sandbox_dir, sizeof sandbox_dir, "%s", subject ? subject : "");
    if (state_name_ok(sandbox_dir) && state_read(&b->root, sandbox_dir, &record, &e) == 0)
        return mem_strdup(record.tenant);
    return mem_strdup(sandbox_dir);
}

static size_t count(const struct broker *b, enum job_limit kind, const char *tenant)
{
    size_t n = 0;

    for (const struct child *c = NULL; (c = children_next(b->children, c));)
        n += c->limit == kind && (!tenant || strcmp(c->tenant, tenant) == 0);
    return n;
}

int job_limits_check(const struct broker *b, const json_t *head, struct err *e)
{
    enum job_limit kind = kind_of(head);

    if (kinds[kind].server == 0)
        return 0;
    AUTO_FREE char *tenant = tenant_of(b, head);
    if (count(b, kind, tenant) >= kinds[kind].tenant)
        return err_set(e, ERR_BUSY,
                       "%zu %s for you already, which is the most at once; try again when one of "
                       "them has ended",
                       kinds[kind].tenant, kinds[kind].name);
    if (count(b, kind, NULL) >= kinds[kind].server)
        return err_set(e, ERR_BUSY, "%zu %s on this server already; try again in a while",
                       kinds[kind].server, kinds[kind].name);
    return 0;
}

void job_limits_note(const struct broker *b, struct child *child, const json_t *head)
{
    enum job_limit kind = kind_of(head);

    if (kinds[kind].server == 0)
        return;
    AUTO_FREE char *tenant = tenant_of(b, head);
    child->limit = kind;
    child_set_owner(child, tenant, NULL);
}
