#include "config.h"

#include "common/scheduler/room_books.h"

#include "common/base/mem.h"
#include "common/sandbox/state/quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void room_books_add(struct room_books *books, struct room_row *row)
{
    *row = (struct room_row){.next = books->first};
    books->first = row;
}

void room_row_name(struct room_row *row, const char *tenant, const char *sandbox_dir)
{
    row->tenant = mem_strdup(tenant);
    snprintf(row->sandbox_dir, sizeof row->sandbox_dir, "%s", sandbox_dir);
    row->named = true;
}

void room_books_remove(struct room_books *books, struct room_row *row)
{
    struct room_row **at = &books->first;

    while (*at != row)
        at = &(*at)->next;
    *at = row->next;
    free(row->tenant);
}

struct coming room_books_beside(const struct room_books *books, const struct room_row *row)
{
    struct coming sum = {0};

    for (const struct room_row *other = books->first; other; other = other->next) {
        if (other == row || !other->named)
            continue;
        if (strcmp(other->sandbox_dir, row->sandbox_dir) == 0)
            sum.conversation += other->bytes;
        if (strcmp(other->tenant, row->tenant) == 0)
            sum.tenant += other->bytes;
        sum.disk += other->bytes - other->there;
    }
    return sum;
}

void room_books_land(const struct room_books *books, struct room_row *row, uint64_t bytes)
{
    for (struct room_row *other = books->first; other; other = other->next) {
        if (other == row || !other->named)
            continue;
        if (strcmp(other->sandbox_dir, row->sandbox_dir) == 0)
            other->now.bytes += bytes;
        else if (strcmp(other->tenant, row->tenant) == 0)
            other->others_bytes += bytes;
    }
    row->bytes = row->there = 0;
}

int room_books_take(const struct room_books *books, struct room_row *row,
                    const struct sandbox_root *root, uint64_t bytes, uint64_t there, struct err *e)
{
    const struct sandbox sb = {.root = root,
                               .fd = -1,
                               .tenant_bytes = row->tenant_bytes,
                               .others_bytes = row->others_bytes,
                               .coming = room_books_beside(books, row)};

    if (quota_check_coming(&sb, &row->now, bytes, there, e) < 0)
        return -1;
    row->bytes = bytes;
    row->there = there < bytes ? there : bytes;
    return 0;
}
