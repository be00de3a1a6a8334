#include "config.h"

#include "fcgi/way.h"
#include "tests/unit/unit.h"

static void each_way_is_known_by_what_lies_there(void **state)
{
    static const struct {
        struct way_facts facts;
        enum way way;
    } rows[] = {
        {{.has_start_sh = true}, WAY_START_SH},
        {{.has_start_sh = true, .installed = true, .systemd = true}, WAY_START_SH},
        {{.installed = true, .systemd = true}, WAY_SYSTEMD},
        {{.installed = true}, WAY_OTHER},
        {{.systemd = true}, WAY_OTHER},
        {{.in_image = true, .installed = true}, WAY_COMPOSE},
        {{.in_image = true, .installed = true, .cluster = true}, WAY_OTHER},
        {{0}, WAY_OTHER},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(way_of(&rows[i].facts), rows[i].way);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_way_is_known_by_what_lies_there),
};
UNIT_TESTS(tests)
