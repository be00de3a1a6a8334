/* A conversation's record in the store: whatever it says, names stay in the conversation, sizes are
 * bounded, and what was read is written and read again as the same. */
#include "config.h"

#include "tests/fuzz/fuzz.h"

#include "common/base/auto.h"
#include "common/sandbox/files/beneath.h"
#include "common/store/manifest.h"

#include <string.h>

static void check_entry(const struct manifest_entry *entry)
{
    uint64_t bytes = 0, end = 0;

    PROMISE(beneath_name_fits(entry->name) && entry->name[0] != '/');
    PROMISE(strcmp(entry->name, "..") != 0 && strncmp(entry->name, "../", 3) != 0);
    PROMISE((entry->target != NULL) == (entry->type == MANIFEST_LINK));
    PROMISE(entry->mode <= 0777);
    for (size_t i = 0; i < entry->n_extents; i++) {
        PROMISE(entry->extents[i].at >= end && entry->extents[i].len > 0);
        end = entry->extents[i].at + entry->extents[i].len;
        bytes += entry->extents[i].len;
    }
    PROMISE(end <= entry->size && bytes == entry->bytes && bytes <= entry->size);
    PROMISE(entry->type != MANIFEST_FILE || strlen(entry->sum) == PAYLOAD_SUM_LEN);
}

static void check_again(const struct manifest *m)
{
    AUTO_BUF struct buf first = BUF_INIT(MANIFEST_MAX), second = BUF_INIT(MANIFEST_MAX);
    AUTO_MANIFEST struct manifest again = {0};
    struct err e = ERR_INIT;

    PROMISE(manifest_write(m, true, &first) == 0);
    PROMISE(manifest_parse(first.data, first.len, &again, &e) == 0);
    PROMISE(again.generation == m->generation && again.n == m->n);
    PROMISE(manifest_write(&again, true, &second) == 0);
    PROMISE(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_MANIFEST struct manifest m = {0}, head = {0};
    struct err e = ERR_INIT;

    if (manifest_parse((const char *)data, size, &m, &e) < 0) {
        promise_error(&e);
        PROMISE(m.n == 0 && !m.entries);
        return 0;
    }
    e = ERR_INIT;
    PROMISE(manifest_parse_head((const char *)data, size, &head, &e) == 0);
    PROMISE(head.generation == m.generation && m.generation > 0);
    for (size_t i = 0; i < m.n; i++)
        check_entry(&m.entries[i]);
    check_again(&m);
    return 0;
}
