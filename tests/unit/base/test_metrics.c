#include "config.h"

#include "common/base/metrics.h"
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX (1 << 20)

static void written(struct buf *out)
{
    buf_reset(out);
    metrics_write(out);
    assert_true(buf_ok(out));
}

static int setup(void **state)
{
    (void)state;
    metrics_open();
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_counted_before_the_memory_is_there),
        cmocka_unit_test_setup(what_children_count_is_added_up, setup),
        cmocka_unit_test_setup(labels_are_bounded_in_number_and_form, setup),
    };
    return RUN_TESTS(tests);
}
