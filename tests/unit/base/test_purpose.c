#include "config.h"

#include "common/base/metrics.h"
#include "common/base/parse.h"
#include "common/base/purpose.h"
#include "tests/unit/unit.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SPIN_US 20000

/* Microseconds that have been counted for the purpose. */
static uint64_t counted(enum purpose purpose)
{
    AUTO_BUF struct buf text = BUF_INIT(1 << 20);
    char key[80];

    metrics_write(&text);
    assert_true(buf_ok(&text));
    snprintf(key, sizeof key, "\nsandcgi_cpu_seconds_total{purpose=\"%s\"} ",
             purpose_name(purpose));
    const char *line = strstr(buf_str(&text), key);
    uint64_t s = 0, us = 0;
    if (!line)
        return 0;
    assert_int_equal(parse_leading_u64(line + strlen(key), &s), 0);
    const char *point = line + strlen(key) + strspn(line + strlen(key), "0123456789");
    if (*point == '.') /* six places, or none */
        assert_int_equal(parse_leading_u64(point + 1, &us), 0);
    return s * 1000000 + us;
}

/* Uses that much processor time. */
static void spin(void)
{
    struct timespec t = {0};
    const clock_t end = clock() + SPIN_US * (CLOCKS_PER_SEC / 1000000);

    while (clock() < end)
        clock_gettime(CLOCK_MONOTONIC, &t);
}

static void forked(void (*body)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void a_process_is_found_by_its_name(void **state)
{
    (void)state;
    char comm[32] = "";

    for (enum purpose p = PURPOSE_MASTER; p < PURPOSE_COUNT; p++) {
        purpose_set(p);
        FILE *file = fopen("/proc/self/comm", "re");
        assert_non_null(file);
        assert_non_null(fgets(comm, sizeof comm, file));
        fclose(file);
        comm[strcspn(comm, "\n")] = '\0';
        assert_int_equal(purpose_of_process(comm), p);
    }
    assert_int_equal(purpose_of_process("sandcgi"), PURPOSE_MASTER); /* the guard */
    assert_int_equal(purpose_of_process("sandcgi-"), PURPOSE_COUNT);
    assert_int_equal(purpose_of_process("nginx"), PURPOSE_COUNT);
    assert_int_equal(purpose_of_process("sandcgi-run"), PURPOSE_COUNT); /* of containers only */
}

static void worker_body(void)
{
    purpose_set(PURPOSE_WORKER);
    spin();
    purpose_count();
    purpose_count(); /* nothing twice */
}

static void silent_body(void)
{
    spin();
    purpose_count(); /* its parent's purpose is not its own */
}

static void job_body(void)
{
    purpose_set(PURPOSE_JOB);
    forked(silent_body);
    purpose_count_end();
}

static void time_is_counted_once_and_for_its_purpose(void **state)
{
    (void)state;
    metrics_open(-1);
    purpose_set(PURPOSE_MASTER);
    uint64_t before = counted(PURPOSE_WORKER);
    forked(worker_body);
    uint64_t used = counted(PURPOSE_WORKER) - before;
    assert_in_range(used, SPIN_US, UINT64_MAX);
    forked(worker_body);
    assert_in_range(counted(PURPOSE_WORKER) - before, 2 * SPIN_US, UINT64_MAX);

    purpose_count();
    before = counted(PURPOSE_MASTER);
    forked(silent_body);
    assert_int_equal(counted(PURPOSE_MASTER), before);
    forked(job_body); /* what it has waited for counts as its own */
    assert_in_range(counted(PURPOSE_JOB), SPIN_US, UINT64_MAX);
    purpose_add_cpu(PURPOSE_RUN, 1500);
    assert_int_equal(counted(PURPOSE_RUN), 1500);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_process_is_found_by_its_name),
    cmocka_unit_test(time_is_counted_once_and_for_its_purpose),
};
UNIT_TESTS(tests)
