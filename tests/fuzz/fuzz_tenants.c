/* The file of tenants' limits: an error names the file and the line, and what is accepted is found
 * again by its name. */
#include "config.h"

#include "common/base/mem.h"
#include "common/base/tenants.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static bool toolsets_ok(const char *list)
{
    return !strchr(list, '!');
}

static void look(const struct tenants *t)
{
    for (size_t i = 0; i < t->n; i++) {
        PROMISE(tenants_find(t, t->items[i].name) == &t->items[i]);
        PROMISE(i == 0 || strcmp(t->items[i - 1].name, t->items[i].name) < 0);
        (void)tenants_list_has(t->items[i].languages, "python");
    }
    PROMISE(tenants_find(t, "no such tenant") == &t->others);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *text = mem_strndup((const char *)data, strnlen((const char *)data, len));
    struct err e = ERR_INIT;
    struct tenants t;

    tenants_init(&t);
    if (tenants_parse("f", text, toolsets_ok, "none", &t, &e) < 0) {
        promise_error(&e);
        PROMISE(strncmp(e.text, "f:", 2) == 0 && e.text[2] >= '1' && e.text[2] <= '9');
    } else {
        look(&t);
    }
    tenants_clear(&t);
    return 0;
}
