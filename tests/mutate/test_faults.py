#!/usr/bin/env python3
"""The faults of tests/mutate.sh: each operator makes the expected ones, and no other; a seed always chooses the same."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import faults  # noqa: E402
import run  # noqa: E402


class Faults(unittest.TestCase):
    def made(self, path, text):
        return [(fault.number, fault.kind, fault.after.strip()) for fault in faults.faults(path, text)]

    def expect(self, path, text, *wanted):
        self.assertEqual(sorted(self.made(path, text)), sorted((text[:text.index(part)].count("\n") + 1, kind, after) for part, kind, after in wanted))

    def test_a_comparison_of_c_is_turned_and_its_bound_is_off_by_one(self):
        self.expect("a.c", "    while (n < max)\n        n++;\n",
                    ("while", faults.TURNED, "while (n >= max)"), ("while", faults.BOUND, "while (n <= max)"))

    def test_one_is_no_longer_added(self):
        self.expect("a.c", "    x = strlen(s) + 1;\n", ("x", faults.BOUND, "x = strlen(s);"))

    def test_a_check_is_dropped_whole_or_one_side_of_it(self):
        self.expect("a.c", "    if (!a || f(b, 0))\n        return;\n",
                    ("if", faults.CHECK, "if (0 && (!a || f(b, 0)))"), ("if", faults.CHECK, "if (!a)"), ("if", faults.SWAPPED, "if (!a || f(0, b))"))

    def test_a_condition_that_guards_nothing_or_goes_on_stays(self):
        self.expect("a.c", "    if (a)\n        b = 1;\n    if (a &&\n        c)\n        return;\n")

    def test_an_error_of_c_is_not_returned(self):
        self.expect("a.c", "    return -1;\n    return err_set(e, ERR_IO,\n                   \"x\");\n    return false;\n",
                    ("return -1", faults.ERROR, "return 0;"), ("return err_set", faults.ERROR, "return 0 * err_set(e, ERR_IO,"),
                    ("return false", faults.ERROR, "return true;"))

    def test_arguments_of_a_call_are_swapped_those_of_a_definition_are_not(self):
        self.expect("a.c", "int f(a, b)\n{\n    g(a, &b->c, \"x\");\n}\n", ("g(", faults.SWAPPED, "g(&b->c, a, \"x\");"))

    def test_a_close_or_free_is_left_out(self):
        self.expect("a.c", "    buf_clear(&b);\n    AUTO_FD int fd = -1;\n    json_auto_t *j = x;\n    printf(s);\n",
                    ("buf_clear", faults.LEFT_OUT, "(void)0;"), ("AUTO_FD", faults.LEFT_OUT, "int fd = -1;"), ("json_auto_t", faults.LEFT_OUT, "json_t *j = x;"))

    def test_a_flag_is_weakened(self):
        self.expect("a.c", "    f(O_RDWR | O_EXCL);\n    g(0640);\n    .awaited = true,\n",
                    ("f(", faults.FLAG, "f(O_RDWR);"), ("f(", faults.FLAG, "f(O_EXCL);"), ("g(", faults.FLAG, "g(0666);"),
                    (".awaited", faults.FLAG, ".awaited = false,"))

    def test_comments_strings_and_macros_of_c_stay(self):
        self.expect("a.c", "/* if (a == b)\n return -1; */\n    x = \"a == b\";\n#define A(b) \\\n    (b == 1)\n")

    def test_directives_of_nginx(self):
        self.expect("a.conf.in", "location / {\n    internal;\n    if ($a = \"\") { return 401; }\n    x on; # off;\n}\n",
                    ("internal", faults.CHECK, ""), ("if", faults.TURNED, 'if ($a != "") { return 401; }'),
                    ("if", faults.ERROR, 'if ($a = "") { return 200; }'), ("x on", faults.FLAG, "x off; # off;"))

    def test_shell(self):
        self.expect("a.sh", "set -euo pipefail\n# exit 1\nf() {\n    [[ -n $a ]] || die 'exit 1'\n    if ((a < b)); then\n    rm -f \"$x\"\ncat <<END\nexit 1\nEND\n}\n",
                    ("set", faults.FLAG, "set -uo pipefail"), ("[[", faults.TURNED, "[[ -z $a ]] || die 'exit 1'"),
                    ("[[", faults.ERROR, "[[ -n $a ]] || : die 'exit 1'"), ("if", faults.CHECK, "if false && ((a < b)); then"),
                    ("if", faults.BOUND, "if ((a <= b)); then"), ("rm", faults.LEFT_OUT, ":"))

    def test_python_and_script(self):
        self.expect("a.py", "def f():\n    '''x == y'''\n    if a is None:\n        raise E(1)\n    os.close(3)\n",
                    ("if", faults.TURNED, "if a is not None:"), ("if", faults.CHECK, "if False and (a is None):"),
                    ("raise", faults.ERROR, "pass"), ("os.close", faults.LEFT_OUT, "pass"))
        self.expect("a.mjs", "  x = a === b // c === d\n", ("x", faults.TURNED, "x = a !== b // c === d"))

    def test_a_file_without_an_ending_is_what_its_first_line_says(self):
        self.assertEqual(faults.language("install", "#!/usr/bin/env python3\n"), "python")
        self.assertEqual(faults.language("prove", "#!/bin/sh\n"), "shell")
        self.assertIsNone(faults.language("Dockerfile", "FROM x\n"))


class Choice(unittest.TestCase):
    def test_a_seed_chooses_the_same_again_each_line_once_and_another_seed_others(self):
        made = faults.faults("a.c", "".join(f"    if (a < {n})\n        return -1;\n" for n in range(50)))
        lines = {}
        for fault in made:
            lines.setdefault((fault.path, fault.number), []).append(fault)
        first, again, other = (list(run.choose(seed, lines)) for seed in (7, 7, 8))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        self.assertEqual(sorted(fault.number for _, fault in first), list(range(1, 101)))

    def test_a_fault_changes_its_line_alone(self):
        fault = faults.faults("a.c", "x\n    return -1;\ny\n")[0]
        self.assertEqual(run.with_fault("x\n    return -1;\ny\n", fault), "x\n    return 0;\ny\n")


if __name__ == "__main__":
    unittest.main()
