#include "config.h"

#include "common/base/auto.h"
#include "common/base/metrics.h"
#include "common/base/parse.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX (1 << 20)
#define STARTED  1700000000
#define FOLLOW   "metrics-follow" /* this program, started anew */

static void written(struct buf *out)
{
    buf_reset(out);
    metrics_write(out);
    assert_true(buf_ok(out));
}

static int setup(void **state)
{
    (void)state;
    metrics_open(-1);
    return 0;
}

static void nothing_is_counted_before_the_memory_is_there(void **state)
{
    (void)state;
    metrics_add(METRIC_RUNS, "", 1);
    metrics_observe(METRIC_RUN, 1);
    metrics_set(METRIC_STREAMS, 3);
    assert_int_equal(metrics_get(METRIC_STREAMS), 0);
}

static void what_children_count_is_added_up(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);

    for (int i = 0; i < 8; i++)
        if (fork() == 0) {
            metrics_enter(i % 2 ? METRICS_BACK : METRICS_FRONT);
            for (int n = 0; n < 1000; n++)
                metrics_add(METRIC_RUNS, "language=\"bash\",status=\"ok\"", 1);
            metrics_observe(METRIC_RUN, 7);
            metrics_observe(METRIC_RUN, 7000000);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    written(&text);
    assert_contains(buf_str(&text), "# TYPE sandcgi_runs_total counter\n"
                                    "sandcgi_runs_total{language=\"bash\",status=\"ok\"} 8000\n");
    assert_contains(buf_str(&text), "sandcgi_run_duration_seconds_bucket{le=\"0.005\"} 0\n");
    assert_contains(buf_str(&text), "sandcgi_run_duration_seconds_bucket{le=\"300\"} 4\n"
                                    "sandcgi_run_duration_seconds_bucket{le=\"+Inf\"} 8\n"
                                    "sandcgi_run_duration_seconds_sum 28000.028000\n"
                                    "sandcgi_run_duration_seconds_count 8\n");
    assert_contains(buf_str(&text),
                    "sandcgi_log_lines_total{level=\"error\"} 0\n"); /* from the start */
}

static void labels_are_bounded_in_number_and_form(void **state)
{
    (void)state;
    AUTO_BUF struct buf text = BUF_INIT(TEXT_MAX);
    size_t n = 0;

    for (int i = 0; i < 1000; i++) {
        AUTO_BUF struct buf labels = BUF_INIT(200);
        char tenant[16];
        snprintf(tenant, sizeof tenant, "t%d", i);
        metrics_label(&labels, "tenant", tenant);
        metrics_add(METRIC_TENANT_RUNS, buf_str(&labels), 1);
    }
    written(&text);
    for (const char *c = buf_str(&text); (c = strstr(c, "sandcgi_tenant_runs_total{")); c++)
        n++;
    assert_int_equal(n, 51);
    assert_contains(buf_str(&text), "sandcgi_tenant_runs_total{tenant=\"other\"} 950\n");
    AUTO_BUF struct buf labels = BUF_INIT(200);
    metrics_label(&labels, "language", "a\"} 1\nb\\\xff");
    assert_string_equal(buf_str(&labels), "language=\"a_} 1_b__\"");
    /* As a worker that was taken over could write them. */
    metrics_add(METRIC_REQUESTS, "route=\"x\"} 1\nup 0", 1);
    metrics_add(METRIC_REQUESTS, "route=\"x\",", 1);
    metrics_add(METRIC_REQUESTS, "route=\"x", 1);
    metrics_add(METRIC_REQUESTS, "route=\"tools/list\",outcome=\"ok\"", 2);
    written(&text);
    assert_null(strstr(buf_str(&text), "route=\"x"));
    assert_contains(buf_str(&text), "{route=\"tools/list\",outcome=\"ok\"} 2\n");
}

/* Whether a program that is started with this memory reads there when the server was started. */
static bool next_program_goes_on(int memory)
{
    int status;

    pid_t pid = fork();
    if (pid == 0) {
        if (dup2(memory, STDIN_FILENO) >= 0)
            execl("/proc/self/exe", "unit", FOLLOW, (char *)NULL);
        _exit(2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 0;
}

static void numbers_outlive_the_program(void **state)
{
    (void)state;
    uint64_t layout;

    metrics_set(METRIC_STARTED, STARTED);
    AUTO_FD int fd = dup(metrics_fd());
    assert_true(fd >= 0);
    assert_true(next_program_goes_on(fd));
    assert_int_equal(pread(fd, &layout, sizeof layout, 0), sizeof layout);
    layout++; /* as of a version that counts something else */
    assert_int_equal(pwrite(fd, &layout, sizeof layout, 0), sizeof layout);
    assert_false(next_program_goes_on(fd));
    metrics_close_fd();
    assert_int_equal(metrics_fd(), -1);
}

static int follow(void)
{
    metrics_open(STDIN_FILENO);
    return metrics_get(METRIC_STARTED) == STARTED ? 0 : 1;
}

UNIT_COMMAND(FOLLOW, follow)

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_is_counted_before_the_memory_is_there),
    cmocka_unit_test_setup(what_children_count_is_added_up, setup),
    cmocka_unit_test_setup(labels_are_bounded_in_number_and_form, setup),
    cmocka_unit_test_setup(numbers_outlive_the_program, setup),
};
UNIT_TESTS(tests)
