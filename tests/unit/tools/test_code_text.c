#include "config.h"

#include "common/base/auto.h"
#include "common/tools/code_text.h"
#include "tests/unit/unit.h"

#include <string.h>

#define MARK "\xEF\xBB\xBF"

static void what_surrounds_a_program_is_taken_off(void **state)
{
    static const struct {
        const char *code, *mended; /* NULL: it stays as it is */
        bool shell;
    } cases[] = {
        {"print(1)", NULL, false},
        {"", NULL, false},
        {"\n\n", NULL, true},
        {"```python\nprint(1)\n```", "print(1)\n", false},
        {"\n \n```\nprint(1)\n```  \n\n", "print(1)\n", false},
        {"~~~~ts title=a\nx\n~~~~", "x\n", false},
        {"  ```sh\nls\n  ```", "ls\n", true},
        {"```python\r\nprint(1)\r\n```\r\n", "print(1)\r\n", false},
        {"```bash\r\nls\r\n```\r\n", "ls\n", true},
        {"````md\n```\nx\n```\n````", "```\nx\n```\n", false},
        /* the inner ones are the program's */
        {"```bash\ncat <<E\n```sh\nls\n```\nE\n```", "cat <<E\n```sh\nls\n```\nE\n", true},
        {"cat <<E > a.md\n```\nx\n```\nE", NULL, true},
        {"text = '''\n```\n'''", NULL, false},
        /* the end is lost */
        {"```python\nprint(1)", "print(1)", false},
        {"```python\nprint(1)\n``", "print(1)\n``", false},
        {"~~~x\n+1", NULL, false},
        {"print(1)\n```", NULL, false},
        {"```", NULL, false},
        {"```print(1)```", NULL, false},
        {"```a `b`\nc\n```", NULL, false},
        {"``\nls\n``", NULL, true},
        {"```\n```", "", false},
        {"text ```\nx\n```", NULL, false},
        {"```js\nx = 1 ```", "x = 1 ```", false},
        /* byte order marks */
        {MARK "print(1)", "print(1)", false},
        {MARK MARK "echo", "echo", true},
        {MARK "```py\n" MARK "x\n```", "x\n", false},
        {"x" MARK, NULL, false},
        /* ends of lines */
        {"a\r\nb\r\n", "a\nb\n", true},
        {"a\r\nb\r\n", NULL, false},
        {"a\rb\r", NULL, true},
        {"a\r\r\nb", "a\r\nb", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO_BUF struct buf out = BUF_INIT(256);
        bool changed = code_text_mend(cases[i].code, strlen(cases[i].code), cases[i].shell, &out);

        if (changed != (cases[i].mended != NULL) ||
            strcmp(buf_str(&out), changed ? cases[i].mended : "") != 0)
            fail_msg("'%s' became '%s'", cases[i].code, buf_str(&out));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_surrounds_a_program_is_taken_off),
};
UNIT_TESTS(tests)
