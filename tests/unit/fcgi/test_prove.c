/* What sandcgi prove makes of its programs' ends. */
#include "config.h"

#include "common/base/mem.h"
#include "fcgi/commands.h"
#include "fcgi/doctor/prove.h"
#include "tests/unit/unit.h"

#include <sys/wait.h>
#include <unistd.h>

/* The first of the wall's states. */
static char *end_of(const struct wall *w)
{
    return mem_strndup(w->ends, strcspn(w->ends, " "));
}

static struct finding judged(const struct wall *w, const char *status, const char *printed,
                             const char *errors)
{
    static struct findings found;
    json_auto_t *result = json_pack("{s:s, s:s, s:s}", "status", status, "stdout", printed,
                                    "stderr", errors);

    findings_clear(&found);
    wall_judge(w, result, NULL, &found);
    assert_int_equal(found.n, 1);
    assert_string_equal(found.items[0].about, w->about);
    const struct finding one = {.state = found.items[0].state,
                                .text = mem_strdup(found.items[0].text)};
    findings_clear(&found);
    return one;
}

static void check_judged(const struct wall *w, const char *status, const char *printed,
                         const char *errors, enum finding_state state, const char *words)
{
    const struct finding one = judged(w, status, printed, errors);

    if (one.state != state || !strstr(one.text, words))
        fail_msg("%s, %s \"%s\": %s %s", w->about, status, printed, finding_state_name(one.state),
                 one.text);
    free(one.text);
}

static void each_wall_holds_when_its_program_ends_as_it_should_and_has_found_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < walls_n; i++) {
        AUTO_FREE char *end = end_of(&walls[i]);
        check_judged(&walls[i], end, "begun\n", "", FINDING_OK, walls[i].holds);
    }
}

static void each_wall_is_missing_when_its_program_has_found_a_hole_however_it_ends(void **state)
{
    static const char *const ends[] = {"ok", "error", "timeout", "out_of_memory", "killed"};

    (void)state;
    for (size_t i = 0; i < walls_n; i++)
        for (size_t k = 0; k < ARRAY_LEN(ends); k++) {
            check_judged(&walls[i], ends[k], "begun\na hole\n", "", FINDING_WRONG, "a hole");
            check_judged(&walls[i], ends[k], "begun\na hole\n", "x", FINDING_WRONG,
                         walls[i].missing);
        }
}

static void a_program_that_did_not_begin_or_failed_proves_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < walls_n; i++) {
        const struct wall *w = &walls[i];
        AUTO_FREE char *end = end_of(w);
        check_judged(w, end, "", "", FINDING_NOTE, "did not begin");
        check_judged(w, end, "beg", "no python", FINDING_NOTE, "did not begin: no python");
        check_judged(w, end, "begun\n", "KeyError", FINDING_NOTE, "failed: KeyError");
        check_judged(w, "error", "begun\n", "", FINDING_NOTE, "status error");
        check_judged(w, "lost", "begun\n", "", FINDING_NOTE, "status lost");
        check_judged(w, "killed", "begun\n", "", FINDING_NOTE, "status killed");
        check_judged(w, "", "begun\n", "", FINDING_NOTE, "status ");
        check_judged(w, "o", "begun\n", "", FINDING_NOTE, "status o");
        if (strcmp(w->about, "time") != 0)
            check_judged(w, "timeout", "begun\n", "", FINDING_NOTE, "status timeout");
        else
            check_judged(w, "ok", "begun\n", "", FINDING_NOTE, "status ok");
    }
}

static void a_run_that_is_refused_proves_nothing(void **state)
{
    struct findings found = {0};
    struct err e = ERR_INIT;

    (void)state;
    err_set(&e, ERR_NOT_FOUND, "there is no runner for python");
    wall_judge(&walls[0], NULL, &e, &found);
    assert_int_equal(found.items[0].state, FINDING_NOTE);
    assert_non_null(strstr(found.items[0].text, "no runner for python"));
    findings_clear(&found);
}

/* ---- the programs, where there are no walls ---- */

static void become_program(const struct wall *w, int out)
{
    static const char start[] = "PROVE_MEMORY=1048576 PROVE_HERE=\"$(readlink /proc/self/ns/*)\" "
                                "exec python3 -c \"$0\"";

    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execlp("sh", "sh", "-c", start, w->program, NULL);
    _exit(1);
}

/* Runs it as this process, and judges that. */
static char *found_without_walls(const struct wall *w, enum finding_state *out)
{
    char printed[4096] = "";
    size_t len = 0;
    ssize_t n;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0)
        become_program(w, ends[1]);
    close(ends[1]);
    while ((n = read(ends[0], printed + len, sizeof printed - 1 - len)) > 0)
        len += (size_t)n;
    close(ends[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    const struct finding one = judged(w, "ok", printed, "");
    *out = one.state;
    return one.text;
}

static void a_program_finds_that_there_are_no_walls(void **state)
{
    static const char *const absent[] = {"namespaces", "engine-filter", "memory"};

    (void)state;
    for (size_t i = 0; i < walls_n; i++)
        for (size_t k = 0; k < ARRAY_LEN(absent); k++)
            if (strcmp(walls[i].about, absent[k]) == 0) {
                enum finding_state found;
                AUTO_FREE char *text = found_without_walls(&walls[i], &found);
                if (found != FINDING_WRONG)
                    fail_msg("%s: %s", walls[i].about, text);
            }
}

static void what_would_harm_a_server_at_work_is_not_tried(void **state)
{
    static const struct {
        const char *about, *status;
        uint64_t memory, pids, quota;
        bool tried;
    } cases[] = {
        {"memory", "{}", 2048ull << 20, 0, 0, true},
        {"memory", "{}", (2048ull << 20) + 1, 0, 0, false},
        {"processes", "{}", 0, 1024, 0, true},
        {"processes", "{}", 0, 1025, 0, false},
        {"quota", "{\"walls\":{\"userQuotas\":true},\"disk\":{\"freeBytes\":100}}", 0, 0, 49, true},
        {"quota", "{\"walls\":{\"userQuotas\":true},\"disk\":{\"freeBytes\":100}}", 0, 0, 50,
         false},
        {"quota", "{\"walls\":{\"userQuotas\":true},\"disk\":{\"freeBytes\":100}}", 0, 0, 0, false},
        {"quota", "{\"walls\":{\"userQuotas\":true}}", 0, 0, 1, false},
        {"quota", "{\"disk\":{\"freeBytes\":100}}", 0, 0, 1, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct settings s = {
            .container = {.memory_bytes = cases[i].memory, .pids = cases[i].pids},
            .bounds = {.bytes = cases[i].quota}};
        json_auto_t *status = json_loads(cases[i].status, 0, NULL);
        for (size_t k = 0; k < walls_n; k++)
            if (strcmp(walls[k].about, cases[i].about) == 0 &&
                walls[k].applies(&s, status) != cases[i].tried)
                fail_msg("row %zu, %s", i, cases[i].about);
    }
}

/* ---- what the status tells ---- */

static enum finding_state state_of(const struct findings *f, const char *about)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->items[i].about, about) == 0)
            return f->items[i].state;
    fail_msg("nothing about %s", about);
    return FINDING_OK;
}

static void what_weakens_a_server_is_a_missing_wall_and_what_is_unknown_no_wall(void **state)
{
    static const struct {
        const char *status, *about;
        enum finding_state state;
    } cases[] = {
        {"{}", "limits", FINDING_NOTE},
        {"{\"limits\":{\"hold\":true}}", "limits", FINDING_OK},
        {"{\"limits\":{\"hold\":false,\"lastError\":\"no memory\"}}", "limits", FINDING_WRONG},
        {"{}", "users", FINDING_WRONG},
        {"{\"walls\":{\"ownUsers\":true}}", "users", FINDING_OK},
        {"{}", "quotas", FINDING_WRONG},
        {"{\"walls\":{\"userQuotas\":true}}", "quotas", FINDING_OK},
        {"{}", "network", FINDING_WRONG},
        {"{\"network\":{\"limit\":\"lan\"}}", "network", FINDING_WRONG},
        {"{\"network\":{\"limit\":\"lan\",\"lastError\":\"no rules\"}}", "network", FINDING_OK},
        {"{\"network\":{\"limit\":\"public\"}}", "network", FINDING_OK},
        {"{\"network\":{\"limit\":\"none\"}}", "network", FINDING_OK},
        {"{\"engine\":{\"ok\":false,\"lastError\":\"gone\"}}", "engine", FINDING_NOTE},
        {"{\"engine\":{\"ok\":true},\"engineApi\":\"1.41\"}", "engine", FINDING_OK},
    };
    char runtime[] = "";
    const struct settings s = {.runtime = runtime};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_auto_t *status = json_loads(cases[i].status, 0, NULL);
        struct findings found = {0};
        assert_non_null(status);
        walls_of_status(&s, status, &found);
        if (state_of(&found, cases[i].about) != cases[i].state)
            fail_msg("%s: not %s", cases[i].status, finding_state_name(cases[i].state));
        findings_clear(&found);
    }
}

static void isolated_is_said_when_each_wall_holds_and_never_else(void **state)
{
    static const struct {
        size_t wrong, untried;
        int status;
        const char *says;
    } cases[] = {{0, 0, 0, "isolated: 2 walls hold\n"},
                 {1, 0, PROVE_MISSING, "1 missing, 0 could not be tried\n"},
                 {1, 2, PROVE_MISSING, "1 missing, 2 could not be tried\n"},
                 {0, 1, PROVE_UNTRIED, "0 missing, 1 could not be tried\n"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct findings found = {0};
        AUTO_BUF struct buf out = BUF_INIT(256);
        findings_add(&found, FINDING_OK, "a", "", "holds");
        findings_add(&found, FINDING_OK, "b", "", "holds");
        for (size_t k = 0; k < cases[i].wrong; k++)
            findings_add(&found, FINDING_WRONG, "c", "", "missing");
        for (size_t k = 0; k < cases[i].untried; k++)
            findings_add(&found, FINDING_NOTE, "d", "", "untried");
        assert_int_equal(walls_sum_up(&found, &out), cases[i].status);
        assert_string_equal(buf_str(&out), cases[i].says);
        findings_clear(&found);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_wall_holds_when_its_program_ends_as_it_should_and_has_found_nothing),
    cmocka_unit_test(each_wall_is_missing_when_its_program_has_found_a_hole_however_it_ends),
    cmocka_unit_test(a_program_that_did_not_begin_or_failed_proves_nothing),
    cmocka_unit_test(a_run_that_is_refused_proves_nothing),
    cmocka_unit_test(a_program_finds_that_there_are_no_walls),
    cmocka_unit_test(what_would_harm_a_server_at_work_is_not_tried),
    cmocka_unit_test(what_weakens_a_server_is_a_missing_wall_and_what_is_unknown_no_wall),
    cmocka_unit_test(isolated_is_said_when_each_wall_holds_and_never_else),
};
UNIT_TESTS(tests)
