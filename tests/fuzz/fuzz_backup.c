/* Names and records of a backup: whatever they say, a name stays in its conversation. */
#include "config.h"

#include "tests/fuzz/fuzz.h"

#include "common/base/auto.h"
#include "common/base/mem.h"
#include "common/sandbox/archive/backup.h"
#include "common/sandbox/files/beneath.h"

#include <string.h>

static void check_entry(const char *path)
{
    struct backup_entry entry;
    struct err e = ERR_INIT;

    if (backup_entry_parse(path, &entry, &e) < 0) {
        promise_error(&e);
        return;
    }
    PROMISE((entry.number == 0) == (entry.part == BACKUP_PART_HEAD));
    PROMISE((*entry.name != '\0') == (entry.part == BACKUP_PART_FILE));
    PROMISE(strlen(entry.name) <= FILES_NAME_MAX && entry.name[0] != '/');
    PROMISE(strncmp(entry.name, "../", 3) != 0 && strcmp(entry.name, "..") != 0);
    PROMISE(!strstr(entry.name, "//") && !strstr(entry.name, "/../"));
}

static void check_record(const char *text, size_t len)
{
    AUTO_FREE char *tenant = NULL, *conversation = NULL;
    struct err e = ERR_INIT;

    if (backup_record_parse(text, len, &tenant, &conversation, &e) < 0)
        promise_error(&e);
    else
        PROMISE(tenant && conversation);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *path = mem_strndup((const char *)data, size);

    check_entry(path);
    check_record((const char *)data, size);
    return 0;
}
