/* When the disk is looked at again. */
#include "config.h"

#include "common/supervisor/disk_watch.h"
#include "tests/unit/unit.h"

#define MIB UINT64_C(1048576)

static void a_quiet_disk_is_looked_at_seldom(void **state)
{
    (void)state;
    assert_int_equal(disk_watch_pause_ms(100 * MIB, 0, 500), DISK_LOOK_MS);
    assert_int_equal(disk_watch_pause_ms(0, 3 * MIB, 500), DISK_LOOK_MS); /* not worth a count */
    assert_int_equal(disk_watch_pause_ms(UINT64_MAX, 100 * MIB, 500), DISK_LOOK_MS);
    assert_int_equal(disk_watch_pause_ms(100 * MIB, 100 * MIB, 0), DISK_LOOK_MS);
}

/* dd writes 1 GiB a second: half of what is left has gone at the next look. */
static void the_faster_it_falls_the_sooner_it_is_looked_at(void **state)
{
    uint64_t room = 512 * MIB;
    int64_t at_ms = DISK_LEAST_MS, pause_ms = DISK_LEAST_MS;
    int looks = 0;

    (void)state;
    while (room > 0) {
        uint64_t lost = (uint64_t)pause_ms * 1024 * MIB / 1000;
        const int64_t took_ms = pause_ms;
        room -= lost < room ? lost : room;
        pause_ms = disk_watch_pause_ms(room, lost, took_ms);
        at_ms += pause_ms;
        looks++;
    }
    assert_true(looks <= 10);
    assert_in_range(at_ms, 500, 500 + 2 * DISK_LEAST_MS + 25); /* 25 MiB above */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_quiet_disk_is_looked_at_seldom),
    cmocka_unit_test(the_faster_it_falls_the_sooner_it_is_looked_at),
};
UNIT_TESTS(tests)
