/* What clients name resources and pages by: sandbox:// URIs and cursors. A URI that is understood
 * names a file that may be opened, and its own spelling leads back to it; a cursor either reaches
 * the broker as an object or is refused. */
#include "config.h"

#include "common/base/mem.h"
#include "common/sandbox/files/files.h"
#include "common/tools/files/uri.h"
#include "tests/fakes/fake_broker.h"
#include "tests/fakes/tools_world.h"
#include "tests/fuzz/fuzz.h"

static void try_uri(const char *text)
{
    AUTO_URI_FILE struct uri_file f = {0};
    AUTO_URI_FILE struct uri_file again = {0};
    struct err e = ERR_INIT;

    if (uri_parse(text, &f, &e) < 0) {
        PROMISE(e.kind == ERR_NOT_FOUND && !f.name && !f.conversation);
        PROMISE(!uri_is_ours(text));
        return;
    }
    PROMISE(files_check_name("name", f.name, strlen(f.name), &e) == 0);
    AUTO_FREE char *ours = uri_of_file(f.conversation, f.name);
    PROMISE(uri_is_ours(ours));
    PROMISE(uri_parse(ours, &again, &e) == 0);
    PROMISE(strcmp(again.conversation, f.conversation) == 0 && strcmp(again.name, f.name) == 0);
}

static void try_cursor(const char *text)
{
    static struct tools_world world;
    struct err e = ERR_INIT;
    char *next = NULL;

    tools_world_init(&world);
    fake_broker_push_page("{\"files\":[]}");
    json_auto_t *named = json_pack("[s]", "c");
    json_auto_t *page = tools_resources.list(&world.app, "me", named, text, &next, &e);
    PROMISE(page || e.kind == ERR_INVALID);
    PROMISE(json_array_size(fake_broker.lists) == (page ? 1 : 0));
    PROMISE(!next);
    tools_world_clear(&world);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    AUTO_FREE char *text = mem_strndup((const char *)data, len);

    try_uri(text);
    try_cursor(text);
    return 0;
}
