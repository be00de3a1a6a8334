#include "config.h"

#include "common/sandbox/state/sizes.h"

#include "common/base/log.h"
#include "common/sandbox/files/owner.h"
#include "common/sandbox/state/quota.h"
#include "common/sandbox/state/state.h"

#include <string.h>

uint64_t sizes_of(const struct sandbox_root *root, const char *name)
{
    AUTO_FD int fd = -1;
    struct err e = ERR_INIT;
    struct usage u;

    if (state_size(root, name, &u))
        return u.bytes;
    fd = owner_open_dir(root->fd, name);
    const struct sandbox sb = {.root = root, .fd = fd};
    if (fd < 0 || usage_measure(&sb, NULL, &u, &e) < 0)
        return 0;
    state_note_size(root, name, &u);
    return u.bytes;
}

void sizes_count_others(struct sandbox *sb, const char *tenant)
{
    AUTO_STATE_LIST struct state_list all = {0};
    struct err e = ERR_INIT;

    sb->tenant_bytes = tenants_find(sb->root->tenants, tenant)->bytes;
    sb->others_bytes = 0;
    if (sb->tenant_bytes == 0)
        return;
    if (state_list(sb->root, tenant, &all, &e) < 0)
        log_warn("what a tenant's files take is not known: %s", e.text);
    for (size_t i = 0; i < all.n; i++)
        if (strcmp(all.items[i].name, sb->name) != 0)
            sb->others_bytes += sizes_of(sb->root, all.items[i].name);
}
