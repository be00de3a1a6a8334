/* Jobs that may last: how many of them everybody may have. The broker takes no connections while it
 * has JOBS_MAX jobs (server.c), so those that do not end soon by themselves must never be all of
 * them, nor may one tenant have all of a kind. */
#include "config.h"

#include "common/base/mem.h"
#include "common/broker/broker.h"
#include "common/rpc/json.h"
#include "common/sandbox/state.h"

#include <stdio.h>
#include <string.h>

/* Together they stay below JOBS_MAX. */
static const struct {
    const char *op, *name; /* as its owner knows several of them */
    size_t server, tenant; /* most at the same time */
} kinds[] = {
    [LASTING_NOT] = {"", "", 0, 0},
    [LASTING_DELETION] = {"delete_conversation", "conversations are being deleted", 12, 6},
    [LASTING_IMPORT] = {"import_url", "files are being fetched", 8, 4},
    [LASTING_PACK] = {"pack", "archives are being downloaded", 24, 8},
    [LASTING_UNPACK] = {"unpack", "archives are being unpacked", 8, 4},
};

static enum lasting kind_of(const json_t *head)
{
    const char *op = json_get_string(head, "op");

    for (size_t i = 1; op && i < ARRAY_LEN(kinds); i++)
        if (strcmp(op, kinds[i].op) == 0)
            return (enum lasting)i;
    return LASTING_NOT;
}

/* Whose job it is; heap. A link to an archive names a sandbox, whose record names the tenant; one
 * without a record counts as somebody of its own. */
static char *tenant_of(const struct broker *b, const json_t *head)
{
    const char *tenant = json_get_string(head, "tenant");
    const char *subject = json_get_string(head, "subject");
    AUTO_STATE_RECORD struct state_record record = STATE_RECORD_INIT;
    struct err e = ERR_INIT;
    char box[SANDBOX_NAME_LEN + 1];

    if (tenant)
        return mem_strdup(tenant);
    snprintf(box, sizeof box, "%s", subject ? subject : "");
    if (state_name_ok(box) && state_read(&b->root, box, &record, &e) == 0)
        return mem_strdup(record.tenant);
    return mem_strdup(box);
}

static size_t count(const struct broker *b, enum lasting kind, const char *tenant)
{
    size_t n = 0;

    for (const struct child *c = NULL; (c = children_next(b->children, c));)
        n += c->lasting == kind && (!tenant || strcmp(c->tenant, tenant) == 0);
    return n;
}

int lasting_check(const struct broker *b, const json_t *head, struct err *e)
{
    enum lasting kind = kind_of(head);

    if (kind == LASTING_NOT)
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

void lasting_note(const struct broker *b, struct child *child, const json_t *head)
{
    enum lasting kind = kind_of(head);

    if (kind == LASTING_NOT)
        return;
    AUTO_FREE char *tenant = tenant_of(b, head);
    child->lasting = kind;
    child_set_owner(child, tenant, NULL);
}
