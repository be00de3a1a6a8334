#include "config.h"

#include "fcgi/commands.h"
#include "tests/unit/unit.h"

static const char *format(const char *json, struct buf *out)
{
    json_error_t at;
    json_t *status = json_loads(json, 0, &at);

    if (!status)
        fail_msg("column %d: %s", at.column, at.text);
    status_format(status, out);
    json_decref(status);
    return buf_str(out);
}

static void a_server_at_work_is_told_line_by_line(void **state)
{
    AUTO_BUF struct buf out = BUF_INIT(4096);

    (void)state;
    assert_string_equal(
        format("{\"engine\":{\"ok\":true},\"network\":{\"limit\":\"lan\"},\"runners\":[{"
               "\"language\":\"bash\",\"version\":\"\"},"
               "{\"language\":\"python\",\"version\":\"3.11.2\"}],\"running\":2,\"maxRuns\":16,"
               "\"queued\":1,\"queueMax\":64,\"warmRuns\":90,\"coldRuns\":10,\"reusedRuns\":70,"
               "\"pool\":{\"reuse\":true,\"doubted\":2,"
               "\"budgetBytes\":1073741824,\"usedBytes\":134217728,\"startsMax\":4,\"starting\":1,"
               "\"conversations\":3,\"images\":[{\"image\":\"sandcgi-runner-workbench:latest\","
               "\"places\":3,"
               "\"starting\":1,\"started\":4,\"preloaded\":1,\"oldestMs\":125000},"
               "{\"image\":\"lua:latest\",\"places\":1,\"starting\":0,\"started\":1,"
               "\"preloaded\":0,\"oldestMs\":9999}]}}",
               &out),
        "engine   ok\n"
        "runners  bash, python 3.11.2\n"
        "network  lan\n"
        "runs     2 of 16 running, 1 of 64 queued\n"
        "         90 of 100 since the start used a warm container\n"
        "         70 in one that had served their conversation, 2 containers could not be wiped\n"
        "warm     started preloaded starting wanted  oldest  image\n"
        "               4         1        1      3  2 min  sandcgi-runner-workbench:latest\n"
        "               1         0        0      1  9 s  lua:latest\n"
        "         3 of them for known conversations\n"
        "         started: the interpreter runs; preloaded: with its libraries;\n"
        "         wanted: for new conversations (SANDBOX_WARM)\n"
        "memory   128 of 1024 MB for warm containers\n"
        "starts   1 in progress, at most 4\n");
}

static void trouble_and_nothing_are_told_too(void **state)
{
    AUTO_BUF struct buf out = BUF_INIT(4096);

    (void)state;
    assert_string_equal(format("{\"engine\":{\"ok\":false,\"lastError\":\"connection refused\"},"
                               "\"network\":{\"limit\":\"public\",\"lastError\":\"no rules\"},"
                               "\"runners\":[],\"pool\":{\"languages\":[]}}",
                               &out),
                        "engine   connection refused\n"
                        "runners  none\n"
                        "network  public: refused: no rules\n"
                        "runs     0 of 0 running, 0 of 0 queued\n"
                        "         0 of 0 since the start used a warm container\n"
                        "         each in a container of its own (SANDBOX_REUSE)\n"
                        "warm     none (SANDBOX_WARM)\n"
                        "memory   0 of 0 MB for warm containers\n"
                        "starts   0 in progress, at most 0\n");
    buf_reset(&out);
    assert_contains(format("{}", &out), "runners  none\n");
    buf_reset(&out);
    const char *text = format(
        "{\"version\":\"1.2\",\"uptimeS\":7300,\"keptResults\":4,\"limits\":{\"hold\":false,"
        "\"lastError\":\"no memory\"},\"disk\":{\"freeBytes\":2097152,\"sizeBytes\":4194304,"
        "\"usedBytes\":1048576,\"limitBytes\":3145728,\"conversations\":7},"
        "\"store\":{\"waiting\":2,\"lagSeconds\":9},"
        "\"lastErrors\":[\"warn a\",\"error b\"]}",
        &out);
    assert_contains(text, "server   version 1.2, up for 2 h\n");
    assert_contains(text, "limits   no memory\n");
    assert_contains(
        text, "disk     2 of 4 MB free, 1 of 3 MB taken by 7 conversations, 4 kept "
              "results\nstore    2 conversations are to be copied, the first for 9 s\nlog     "
              " warn a\n         error b\n");
    buf_reset(&out);
    assert_contains(format("{\"store\":{\"waiting\":0}}", &out), "store    has all files\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_server_at_work_is_told_line_by_line),
    cmocka_unit_test(trouble_and_nothing_are_told_too),
};
UNIT_TESTS(tests)
