/* The hint of what a program imports. */
#include "config.h"

#include "common/rpc/json.h"
#include "common/tools/runs/imports.h"
#include "tests/unit/unit.h"

static void imports_are_guessed(void **state)
{
    static const struct {
        const char *language, *code, *names;
    } table[] = {
        {"python", "import numpy as np, os.path\nfrom pandas.io import x\n\timport a\nimport a\n",
         "[\"numpy\",\"os\",\"pandas\",\"a\"]"},
        {"python", "print('import x')\nfrom . import y\nimportant\nimport", "[]"},
        {"python", "import a; import b, c;from d import e ; x = 1;\nif x: import f; import g;",
         "[\"a\",\"b\",\"c\",\"d\",\"g\"]"},
        {"typescript",
         "import x, { y } from 'pg/lib';\nimport \"./own\";\n"
         "const q = require(\"@a/b/c\")\nimport z from \"",
         "[\"pg\",\"@a/b\"]"},
        {"python", "", "[]"},
    };
    const struct run_text other = {"import a", 8};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        const struct run_text code = {table[i].code, strlen(table[i].code)};
        json_auto_t *names = imports_of(table[i].language, code);
        AUTO_FREE char *text = json_dumps(names, JSON_COMPACT);
        assert_string_equal(text, table[i].names);
    }
    assert_null(imports_of("bash", other));
}

static void names_are_bounded(void **state)
{
    AUTO_BUF struct buf code = BUF_INIT(65536);

    (void)state;
    for (int i = 0; i < 2 * WANTS_MAX; i++)
        buf_addf(&code, "import m%d\n", i);
    buf_addf(&code, "import %0100d\n", 1);
    json_auto_t *names = imports_of("python", (struct run_text){code.data, code.len});
    assert_int_equal(json_array_size(names), WANTS_MAX);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(imports_are_guessed),
    cmocka_unit_test(names_are_bounded),
};
UNIT_TESTS(tests)
