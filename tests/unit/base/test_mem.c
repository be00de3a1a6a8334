#include "config.h"

#include "common/base/mem.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

static void new_memory_is_zeroed(void **state)
{
    (void)state;
    AUTO_FREE char *one = mem_alloc(100);
    AUTO_FREE int *many = mem_array(25, sizeof *many);
    for (int i = 0; i < 100; i++)
        assert_int_equal(one[i], 0);
    for (int i = 0; i < 25; i++)
        assert_int_equal(many[i], 0);
}

static void a_size_of_zero_still_gives_memory(void **state)
{
    (void)state;
    AUTO_FREE void *a = mem_alloc(0);
    AUTO_FREE void *b = mem_array(0, 8);
    AUTO_FREE void *c = mem_resize(NULL, 0, 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
}

static void copies_are_the_callers_own(void **state)
{
    (void)state;
    const char bytes[4] = {'a', '\0', 'b', 'c'};
    AUTO_FREE char *text = mem_strdup("text");
    AUTO_FREE char *part = mem_strndup(bytes, 3);
    AUTO_FREE char *none = mem_strndup(NULL, 0);
    AUTO_FREE char *made = mem_printf("%s-%d", "a", 7);
    assert_string_equal(text, "text");
    assert_memory_equal(part, "a\0b", 4);
    assert_string_equal(none, "");
    assert_string_equal(made, "a-7");
}

static void resizing_keeps_the_content(void **state)
{
    (void)state;
    char *p = mem_strdup("abc");
    p = mem_resize(p, 1000, 4);
    assert_string_equal(p, "abc");
    free(p);
}

static void ask_for_too_much(int how)
{
    volatile size_t n = SIZE_MAX / 2; /* kept from the compiler, which would warn */
    if (how == 0)
        mem_array(n, 4);
    else if (how == 1)
        mem_resize(NULL, n, 3);
    else
        mem_alloc(n + 2);
}

static void a_size_that_overflows_ends_the_process_with_70(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
            dup2(null, STDERR_FILENO);
            ask_for_too_much(how);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 70);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(new_memory_is_zeroed),
    cmocka_unit_test(a_size_of_zero_still_gives_memory),
    cmocka_unit_test(copies_are_the_callers_own),
    cmocka_unit_test(resizing_keeps_the_content),
    cmocka_unit_test(a_size_that_overflows_ends_the_process_with_70),
};
UNIT_TESTS(tests)
