/* What the trials of an engine's limits conclude, and what a server with
 * SANDBOX_LIMITS_CHECK=refuse does until they have. */
#include "config.h"

#include "common/broker/limits_probe.h"
#include "common/protocol/client_files.h"
#include "tests/fakes/engine_rows.h"
#include "tests/unit/broker/broker_world.h"

#include <errno.h>

static void judge(enum limits_trial trial, const char *printed, struct err died,
                  enum limits_verdict wanted)
{
    struct err e = ERR_INIT;
    enum limits_verdict verdict = limits_judge(trial, printed, &died, &e);

    if (verdict != wanted || (verdict == LIMITS_UNKNOWN) != (e.kind != ERR_NONE))
        fail_msg("%s, %s: %d, %s", printed, died.text, verdict, e.text);
}

static void only_a_program_that_its_limit_stopped_proves_it(void **state)
{
    const struct err none = ERR_INIT, late = {.kind = ERR_TIMEOUT, .text = "late"},
                     refused = {.kind = ERR_REFUSED, .text = "the engine's words"},
                     killed = {.kind = ERR_LOST, .text = "from outside"},
                     memory = {.kind = ERR_LOST, .sys = ENOMEM, .text = "out of memory"};

    (void)state;
    judge(LIMITS_MEMORY, "1048576\n0\n", none, LIMITS_HOLD);
    judge(LIMITS_MEMORY, "1048576\n", memory, LIMITS_HOLD);
    judge(LIMITS_MEMORY, "1048576\n167772160\n", none, LIMITS_FAIL);
    judge(LIMITS_MEMORY, "1048576\n167772160\n", late, LIMITS_FAIL);
    judge(LIMITS_PIDS, "begun\n", none, LIMITS_HOLD);
    judge(LIMITS_PIDS, "begun\nall\n", none, LIMITS_FAIL);
    for (enum limits_trial i = 0; i < LIMITS_TRIALS; i++) {
        const char *begun = i == LIMITS_MEMORY ? "1048576\n" : "begun\n";

        judge(i, begun, late, LIMITS_UNKNOWN);
        judge(i, begun, refused, LIMITS_UNKNOWN);
        judge(i, begun, killed, LIMITS_UNKNOWN);
        judge(i, "", none, LIMITS_UNKNOWN);
        judge(i, "", memory, LIMITS_UNKNOWN);
    }
    judge(LIMITS_PIDS, "begun\n", memory, LIMITS_UNKNOWN);
}

/* ---- a server ---- */

#define REPLY_MEMORY                                                                               \
    "\1\0\0\0\0\0\0\23O\0\0\0\16\0\0\0\1"                                                          \
    "1048576\n0\n"
#define REPLY_PIDS                                                                                 \
    "\1\0\0\0\0\0\0\17O\0\0\0\12\0\0\0\1"                                                          \
    "begun\n"

static const struct fake_later memory_holds[] = {{1, BYTES(REPLY_MEMORY STREAM_REPORT)}, {0}};
static const struct fake_later pids_hold[] = {{1, BYTES(REPLY_PIDS STREAM_REPORT)}, {0}};

static const struct fake_reply engine_that_fails_once[] = {
    {.match = "POST /v1.41/containers/create",
     .status = 500,
     .body = "{\"message\":\"no space\"}",
     .times = 1},
    CREATED,
    {.match = ATTACH,
     .status = 101,
     .stream = STREAM_STARTED,
     .stream_len = sizeof STREAM_STARTED - 1,
     .later = memory_holds,
     .hold_ms = 5000,
     .times = 1},
    {.match = ATTACH,
     .status = 101,
     .stream = STREAM_STARTED,
     .stream_len = sizeof STREAM_STARTED - 1,
     .later = pids_hold,
     .hold_ms = 5000},
    STARTED,
    WAITED,
    BW_REPLIES,
};

static bool limits_are(struct broker_world *w, bool hold, const char *words)
{
    json_auto_t *status = bw_status(w);
    const json_t *limits = json_object_get(status, "limits");
    const char *error = json_get_string(limits, "lastError");

    return json_get_bool(limits, "hold", 0) == hold &&
           (words ? error && strstr(error, words) : !error);
}

static void wait_for_limits(struct broker_world *w, bool hold, const char *words)
{
    struct deadline d = deadline_in_ms(20000);

    while (!limits_are(w, hold, words)) {
        assert_false(deadline_passed(d));
        poll(NULL, 0, 10);
    }
}

static void expect_no_run(struct broker_world *w, const char *words)
{
    struct run_request r = bw_request("t", "c", "out x");
    struct err e = ERR_INIT;

    assert_null(broker_run(&w->client, &r, NULL, &e));
    assert_int_equal(e.kind, ERR_UNAVAILABLE);
    assert_contains(e.text, words);
    e = ERR_INIT;
    assert_fails(broker_ready(&w->client, &e), ERR_BUSY, e);
}

static void a_trial_that_fails_keeps_the_server_shut_and_is_made_again(void **state)
{
    static struct broker_world w;
    struct run_request r = bw_request("t", "c", "out x");
    struct err e = ERR_INIT;

    (void)state;
    bw_open(&w);
    bw_use_engine(&w, engine_that_fails_once);
    w.config.limits_check = LIMITS_REFUSE;
    bw_start_broker(&w);
    expect_no_run(&w, "limits");
    wait_for_limits(&w, false, "could not be tested: the container engine answered 500: no space");
    expect_no_run(&w, "could not be tested");
    wait_for_limits(&w, true, NULL);
    json_auto_t *result = broker_run(&w.client, &r, NULL, &e);
    assert_non_null(result);
    assert_works(broker_ready(&w.client, &e), e);
    bw_close(&w);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_a_program_that_its_limit_stopped_proves_it),
    cmocka_unit_test(a_trial_that_fails_keeps_the_server_shut_and_is_made_again),
};
UNIT_TESTS(tests)
