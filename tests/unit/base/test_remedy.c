#include "config.h"

#include "common/base/remedy.h"
#include "tests/unit/unit.h"

#include <string.h>

static int teardown(void **state)
{
    (void)state;
    remedy_find_way(NULL);
    return 0;
}

static void every_operator_has_a_remedy_for_everything(void **state)
{
    (void)state;
    for (enum remedy what = 0; what < REMEDIES; what++)
        for (enum way reader = WAY_START_SH; reader < WAYS; reader++)
            if (!*remedy_for(what, reader))
                fail_msg("remedy %d has no text for reader %d", what, reader);
}

/* What a client that starts its server itself does not have. */
static void a_user_at_stdio_has_one_for_all_but_web_server_and_passphrase(void **state)
{
    (void)state;
    for (enum remedy what = 0; what < REMEDIES; what++) {
        const bool of_web = what == REMEDY_SITE || what == REMEDY_SITE_START ||
                            what == REMEDY_SITE_RELOAD || what == REMEDY_SECRET_FILE;
        assert_int_equal(*remedy_for(what, WAY_STDIO) == '\0', of_web);
    }
}

static void models_are_told_no_command_and_no_setting(void **state)
{
    static const char *const words[] = {"sandcgi", "docker", "systemctl", ".sh", "/",
                                        "SAND",    "DOCKER", "sudo",      "--"};

    (void)state;
    for (enum remedy what = 0; what < REMEDIES; what++)
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
            if (strstr(remedy_for(what, WAY_MODEL), words[i]))
                fail_msg("remedy %d tells a model of %s", what, words[i]);
}

static int searches;

static enum way find_compose(void)
{
    searches++;
    return WAY_COMPOSE;
}

static void the_way_is_found_once_and_at_the_first_sentence(void **state)
{
    (void)state;
    searches = 0;
    remedy_find_way(find_compose);
    assert_int_equal(searches, 0);
    assert_string_equal(remedy(REMEDY_START), "docker-compose up -d");
    assert_int_equal(remedy_way(), WAY_COMPOSE);
    assert_int_equal(searches, 1);
    remedy_find_way(NULL);
    assert_string_equal(remedy(REMEDY_START), remedy_for(REMEDY_START, WAY_OTHER));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_operator_has_a_remedy_for_everything),
    cmocka_unit_test(a_user_at_stdio_has_one_for_all_but_web_server_and_passphrase),
    cmocka_unit_test(models_are_told_no_command_and_no_setting),
    cmocka_unit_test_teardown(the_way_is_found_once_and_at_the_first_sentence, teardown),
};
UNIT_TESTS(tests)
