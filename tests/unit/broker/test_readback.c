/* Which calls the store is asked before. */
#include "config.h"

#include "common/base/mem.h"
#include "common/broker/readback.h"
#include "common/rpc/json.h"
#include "tests/unit/sandbox/sandbox_fixture.h"

/* The URI of a file, and an archive's subject: what the URLs of a conversation have behind the
 * server's. */
static void a_conversation_that_is_not_here_is_asked_for_however_a_call_names_it(void **state)
{
    struct fixture *f = *state;
    struct broker_config config = {.store = {.place = f->dir}};
    const struct spawner spawner = {.config = &config, .root = &f->root};
    const struct readback r = {.spawner = &spawner};
    AUTO_FREE char *path = sandbox_url_path(&f->sb), *uri = mem_printf("/files/%s/a.txt", path),
                   *other = mem_printf("/files/%s/a.txt", path);
    char name[SANDBOX_NAME_LEN + 1];

    other[strlen("/files/")] = other[strlen("/files/")] == '0' ? '1'
                                                               : '0'; /* and its token stays */
    const struct {
        const char *op, *member, *text;
        bool wanted;
    } rows[] = {{"open", "conversationId", "talk", true}, {"open_url", "uri", uri, true},
                {"pack", "subject", path, true},          {"open_url", "uri", other, false},
                {"open_url", "uri", "/files/x", false},   {"pack", "subject", "x", false},
                {"ping", "conversationId", "talk", false}};

    for (int here = 1; here >= 0; here--) {
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            json_auto_t *head = json_pack("{s:s, s:s, s:s}", "op", rows[i].op, "tenant", "default",
                                          rows[i].member, rows[i].text);
            if (readback_wants(&r, head, name) != (rows[i].wanted && !here))
                fail_msg("%s %s, here: %d", rows[i].op, rows[i].text, here);
            if (rows[i].wanted)
                assert_string_equal(name, f->sb.name);
        }
        if (here)
            assert_int_equal(renameat(f->root.fd, f->sb.name, f->root.fd, "elsewhere"), 0);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(
        a_conversation_that_is_not_here_is_asked_for_however_a_call_names_it, fixture_setup,
        fixture_teardown),
};
UNIT_TESTS(tests)
