/* What the test of a network concludes from what its container has seen. */
#include "config.h"

#include "common/base/mem.h"
#include "common/broker/network_probe.h"
#include "common/broker/probe.h"
#include "tests/unit/unit.h"

#include <string.h>

#define OTHERS "172.20.0.2\nfd07::2\n"
#define APART  "172.20.0.2 unreachable 172.20.0.2\nfd07::2 silent fd07::2\n"
#define KEPT                                                                                       \
    "127.0.0.1 answered 127.0.0.1\ngateway prohibited 172.20.0.1\n"                                \
    "10.255.255.254 prohibited x\n172.31.255.254 prohibited x\n192.168.255.254 prohibited x\n"     \
    "169.254.169.254 prohibited x\n100.127.255.254 prohibited x\nfd00:ec2::254 none x\n"

static void judge(enum network_tier tier, const char *text, const char *complaint)
{
    AUTO_FREE char *lines = mem_strdup(text);
    struct err e = ERR_INIT;
    int verdict = network_probe_judge(tier, lines, OTHERS, &e);

    if (verdict != (complaint ? -1 : 0) || (complaint && !strstr(e.text, complaint)))
        fail_msg("%s: %d, %s", text, verdict, e.text);
}

/* KEPT with another word for one target. */
static void judge_with(const char *from, const char *to, const char *complaint)
{
    const char *at = strstr(KEPT, from);
    AUTO_FREE char *text = mem_printf("%.*s%s%s" APART, (int)(at - KEPT), KEPT, to,
                                      at + strlen(from));

    judge(NETWORK_PUBLIC, text, complaint);
}

static void only_a_refusal_of_our_rules_counts(void **state)
{
    (void)state;
    judge(NETWORK_PUBLIC, KEPT APART, NULL);
    judge_with("gateway prohibited", "gateway answered", "gateway (answered)");
    /* Another firewall, or no host there: that may change. */
    judge_with("192.168.255.254 prohibited", "192.168.255.254 silent", "192.168.255.254 (silent)");
    judge_with("10.255.255.254 prohibited", "10.255.255.254 unreachable", "10.255.255.254");
    judge_with("169.254.169.254 prohibited", "169.254.169.254 none", NULL);
    judge_with("fd00:ec2::254 none", "fd00:ec2::254 answered", "fd00:ec2::254");
}

static void another_container_must_not_answer(void **state)
{
    static const char self[] = "127.0.0.1 answered x\n";
    AUTO_FREE char *apart = mem_printf("%s" APART, self);
    AUTO_FREE char *reached = mem_printf("%s172.20.0.2 answered x\nfd07::2 silent x\n", self);

    (void)state;
    judge(NETWORK_LAN, apart, NULL);
    judge(NETWORK_LAN, reached, "reach each other (172.20.0.2)");
    judge(NETWORK_PUBLIC, KEPT "172.20.0.2 answered x\nfd07::2 silent x\n", "each other");
}

static void a_test_that_does_not_work_proves_nothing(void **state)
{
    (void)state;
    judge(NETWORK_LAN, "", "127.0.0.1");
    judge(NETWORK_LAN, "127.0.0.1 silent x\n" APART, "does not work");
    judge(NETWORK_LAN, "127.0.0.1 answered x\n172.20.0.2 silent x\n", "fd07::2");
    judge(NETWORK_LAN, "127.0.0.1\n", "not readable");
    judge_with("gateway prohibited 172.20.0.1\n", "", "nothing about gateway");
}

static int refuse(struct engine *engine, const struct engine_command *command, uint32_t *id,
                  struct err *e)
{
    (void)engine;
    (void)command;
    (void)id;
    return err_set(e, ERR_LOST, "the container has ended");
}

static void a_command_that_the_container_does_not_take_is_no_success(void **state)
{
    static const struct engine_ops ops = {.exec = refuse};
    static const char *const argv[] = {"true"};
    struct engine engine = {.ops = &ops};
    struct probe p = {.engine = &engine};
    AUTO_BUF struct buf out = BUF_INIT(100);
    struct engine_outcome outcome;
    struct err e;

    (void)state;
    assert_fails(probe_run(&p, argv, 1, &out, &outcome, &e), ERR_LOST, e);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_a_refusal_of_our_rules_counts),
    cmocka_unit_test(another_container_must_not_answer),
    cmocka_unit_test(a_test_that_does_not_work_proves_nothing),
    cmocka_unit_test(a_command_that_the_container_does_not_take_is_no_success),
};
UNIT_TESTS(tests)
