#!/usr/bin/env python3
"""The entry program with a table of languages: what it reads, and runs of several languages in one container. No engine is needed."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import psandboxes  # noqa: E402
import report  # noqa: E402
import sbx  # noqa: E402
import test_entry as base  # noqa: E402
import test_next as following  # noqa: E402


class Table(base.Case):
    """The folder with a file for each language."""

    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.dir.name, "languages")
        os.mkdir(self.folder)
        self.write("sh", "# the shell\n\n" + self.script + "\nsh\n" + self.script + "\n")
        self.write("cat", f"{self.script}.cat\ncat\n{self.script}.cat\n-")

    def write(self, name, text):
        pathlib.Path(self.folder, name).write_text(text)

    def command(self, *arguments):
        return [base.ENTRY, *(arguments or ("-C", self.dir.name, "-L", self.folder, "-F", "sh"))]

    def open(self, *arguments):
        container = psandboxes.Psandbox(self.command(*arguments))
        self.addCleanup(lambda: self.assertEqual(container.close(), (0, b"")))
        return container

    def check_refused(self, reason, *arguments):
        r = sbx.run(self.command(*arguments), b"")
        self.assertEqual((r.exit, r.said.decode()), (125, f"entry: {reason}\n"))

    def test_a_run_is_in_the_first_language_unless_it_names_one(self):
        for language, out in ((None, "3 in\n"), ("sh", "3 in\n"), ("cat", "echo $((1 + 2)) $(cat)in\n")):
            end = self.open().run(code="echo $((1 + 2)) $(cat)", language=language, stdin="in\n")
            self.assertEqual((bytes(end.out).decode(), end.started), (out, "new"))

    def test_what_the_command_line_says_holds_for_all(self):
        self.write("pwd", f"{self.script}\npwd")
        self.write("root", f"-C\n/\n{self.script}\npwd")
        for language, out in (("pwd", os.path.realpath(self.dir.name)), ("root", "/")):
            self.assertEqual(bytes(self.open().run(code="", language=language).out).decode(), out + "\n")

    def test_a_language_is_named_once_before_its_code(self):
        language, code = sbx.record("B", 1, "sh"), sbx.record("C", 1, "echo no")
        for data in (language + language, code + language, sbx.record("I", 1, "a") + language, language + sbx.record("X", 1),
                     sbx.record("B", 1, "lua"), sbx.record("B", 1, ""), sbx.record("B", 0, "sh") + code,
                     language + code + sbx.record("B", 2, "sh")):
            with self.subTest(data=data):
                r = sbx.run(self.command(), data)
                self.assertEqual((r.exit, r.report, r.said), (125, None, b"entry: bad record\n"))

    def test_without_a_table_no_language_has_a_name(self):
        for name in ("", "sh"):
            r = sbx.run(super().command(), sbx.record("B", 1, name))
            self.assertEqual((r.exit, r.said), (125, b"entry: bad record\n"))

    def test_hidden_files_are_no_languages(self):
        self.write(".sh.swp", "")
        self.assertEqual(self.open().run(code="exit 3").report["exitCode"], 3)

    def test_a_file_that_makes_no_sense_is_named(self):
        missing = "SCRIPT or PROGRAM is missing"
        for text, reason in (("", missing), ("-w\n", missing), ("/tmp/x\n#sh", missing),
                             ("-q\n/tmp/x\nsh", "an option that there is not, or one without its value"),
                             ("-x\nNAME\n/tmp/x\nsh", "the value of -x is not NAME=VALUE"),
                             (f"-L\n{self.folder}\n-F\nsh", "it names a table"), ("x" * 70000, "it is too long")):
            self.write("bad", text)
            self.check_refused(f"{self.folder}/bad: {reason}")
        os.unlink(os.path.join(self.folder, "bad"))
        os.symlink("/no/such/file", os.path.join(self.folder, "bad"))
        self.check_refused(f"{self.folder}/bad: No such file or directory")

    def test_a_table_without_the_first_language_is_refused(self):
        self.check_refused(f"{self.folder}: there is no lua", "-L", self.folder, "-F", "lua")
        self.check_refused("/no/such/folder: No such file or directory", "-L", "/no/such/folder", "-F", "sh")

    def test_more_languages_than_there_is_room_for_are_refused(self):
        for n in range(30):
            self.write(f"l{n}", "/tmp/x\nsh")
        self.assertEqual(self.open().run(code="exit 3").report["exitCode"], 3)
        self.write("l30", "/tmp/x\nsh")
        r = sbx.run(self.command(), b"")
        self.assertEqual(r.exit, 125)
        self.assertRegex(r.said, b": it is one too many\n$")

    def test_a_table_and_a_language_exclude_each_other(self):
        for arguments in (("-L", self.folder), ("-F", "sh"), ("-L", self.folder, "-F", "sh", self.script, "sh")):
            r = sbx.run(self.command(*arguments), b"")
            self.assertEqual(r.exit, 125)
            self.assertIn(b"usage: entry", r.said)


def waiting(name, *options):
    """A language whose template is hook.py; its programs are shell scripts."""
    script = f"/tmp/{name}"
    return ["-w", "-t", "-l", "/image/warm.so", "-x", "HOOK_TEMPLATE=1", *options, script, "python3", "/image/hook.py", script]


SHELL = ["/tmp/shell", "sh", "/tmp/shell"]
LANGUAGES = {"one": waiting("one", "-m", "os"), "two": waiting("two", "-p"), "shell": SHELL}


class Languages(following.Case):
    """Runs of several languages follow one another."""

    def open_all(self, **options):
        return self.open(languages=LANGUAGES, **options)

    def test_each_run_is_in_its_language_and_finds_none_of_the_others(self):
        container = self.open_all()
        for n, language in enumerate(("one", "two", "shell", "two", "one", "one", "shell", "two", "two", "one")):
            end = container.run("a b", code='echo $0 $1 $X $(cat) $(ls -A /tmp); : >/tmp/left', language=language, stdin=str(n), env=[f"X={n}"])
            self.assertEqual(bytes(end.out).decode(), f"/tmp/{language} a b {n} {n} {language}\n")
            self.assertIsNone(container.next())

    def test_a_further_language_waits_behind_its_first_run(self):
        container = self.open_all()
        for language, started in (("two", "new"), ("two", "warm"), ("one", "warm"), ("two", "warm"), ("shell", "new"), ("two", "warm"), ("one", "warm")):
            end = container.run(code="echo $0 $WAY", language=language)
            self.assertEqual((language, end.started), (language, started))
            self.assertIsNone(container.next())
            if started == "new" and language == "two":
                container.await_template()

    def test_a_run_does_not_wait_for_the_template_of_another_language(self):
        slow = ["-w", "-t", "-x", "HOOK_WORD=late", "-e", "HOOK_TEMPLATE", *waiting("two")[-4:]]
        container = self.open(languages={**LANGUAGES, "two": slow}, env=["HOOK_TEMPLATE=1"])
        for language, started in (("two", "new"), ("one", "warm"), ("shell", "new"), ("two", "new"), ("two", "warm"), ("one", "warm"), ("two", "warm")):
            end = container.run(code="echo $WAY", language=language)
            self.assertEqual((language, end.started), (language, started))
            self.assertIsNone(container.next())

    def test_a_template_that_is_coming_up_is_no_ones_to_change(self):
        slow = ["-w", "-t", "-x", "HOOK_WORD=late", *waiting("two")[-4:]]
        container = self.open(languages={**LANGUAGES, "two": slow}, env=["HOOK_TEMPLATE=1"])
        container.run(code="", language="two")
        self.assertIsNone(container.next())
        end = container.run(code="while grep -qs two /proc/[0-9]*/cmdline; do sleep 0.01; done", language="shell")  # killed: it goes
        self.assertEqual(end.report["exitCode"], 0)
        self.assertIsNone(container.next())

    def test_libraries_are_the_first_languages(self):
        container = self.open_all()
        container.run(code="", language="two")
        self.assertIsNone(container.next())
        container.await_template()
        container.send(sbx.preload("a0.1"))
        self.assertEqual(sbx.tier_of(container.frames.get(timeout=60)[2]), "preloaded")
        for language, loaded in (("two", ""), ("shell", ""), ("one", "loaded"), ("two", "")):
            end = container.run(code=": <<END\nimport a\nEND\necho $LOADED", language=language, load="a0.1")
            self.assertEqual((language, bytes(end.out).decode()), (language, loaded + "\n"))
            self.assertIsNone(container.next("preloaded"))

    def test_behind_the_libraries_templates_of_further_languages_start(self):
        container = self.open_all()
        container.send(sbx.preload("a0"))
        tiers = [sbx.tier_of(container.frames.get(timeout=60)[2]) for _ in range(2)]  # with the memory of the further one, too
        self.assertEqual(tiers, ["preloaded", "preloaded"])
        for language, started, loaded in (("two", "warm", ""), ("shell", "new", ""), ("one", "warm", "loaded"), ("two", "warm", "")):
            end = container.run(code=": <<END\nimport a\nEND\necho $LOADED", language=language, load="a0")
            self.assertEqual((language, end.started, bytes(end.out).decode()), (language, started, loaded + "\n"))
            self.assertIsNone(container.next("preloaded"))

    def test_a_run_does_not_wait_for_a_further_template_that_comes_up_behind_the_libraries(self):
        slow = ["-w", "-t", "-p", "-x", "HOOK_WORD=late", "-e", "HOOK_TEMPLATE", *waiting("two")[-4:]]
        container = self.open(languages={**LANGUAGES, "two": slow}, env=["HOOK_TEMPLATE=1"])
        container.send(sbx.preload("a0"))
        self.assertEqual(sbx.tier_of(container.frames.get(timeout=60)[2]), "preloaded")
        end = container.run(code=": <<END\nimport a\nEND\necho $WAY $LOADED; ls -A /tmp", language="one", load="a0")
        self.assertEqual(bytes(end.out).decode(), "warm loaded\none\n")
        self.assertIsNone(container.next("preloaded"))

    def test_libraries_go_on_to_be_loaded_behind_a_run_of_another_language(self):
        container = self.open_all()
        container.send(sbx.preload("a0.1 b0.5"))
        self.assertEqual(bytes(container.run(code="echo over", language="shell").out), b"over\n")
        self.assertIsNone(container.next())
        self.assertEqual(sbx.tier_of(container.frames.get(timeout=60)[2]), "preloaded")
        end = container.run(code=": <<END\nimport b\nEND\necho $WAY $LOADED", language="one")
        self.assertEqual(bytes(end.out), b"warm loaded\n")
        self.assertIsNone(container.next("preloaded"))

    def test_commands_run_beside_all_of_them(self):
        container = self.open_all()
        for language in LANGUAGES:
            container.run(code="", language=language)
            self.assertEqual(bytes(container.sh("pwd").out), b"/data\n")
            self.assertIsNone(container.next())

    def test_nothing_grows_with_the_number_of_runs(self):
        container = self.open_all()
        entry = container.entry_pid()
        seen = []
        for n in range(120):
            language = ("one", "two", "shell")[n % 3]
            end = container.run(code="echo x", language=language)
            self.assertEqual(bytes(end.out), b"x\n")
            self.assertIsNone(container.next())
            if n == 1:
                container.await_template()
            if n in (32, 119):
                seen.append((psandboxes.descriptors(entry), psandboxes.memory_kb(entry, "VmData"), len(psandboxes.children(entry))))
        self.assertEqual(seen[0], seen[1])


def python(name):
    """A language with the Python runner's template; its Python is the system's."""
    return ["-w", "-t", "-l", "/image/warm.so", "-x", "SANDBOX_HOOK=3", f"/tmp/{name}", "/usr/bin/python3", f"/tmp/{name}"]


# What a program in a shell does to process $pid, and what of it the container finds changed; "": nothing of that reaches it.
HARMS = {
    "prlimit --pid $pid --nofile=16:16": "limits",
    "taskset -cp 0 $pid": "processors",
    "chrt -i -p 0 $pid": "scheduling",
    "ionice -c 3 -p $pid": "scheduling",
    "echo 600 >/proc/$pid/oom_score_adj": "",
    "kill -STOP $pid; sleep 0.1": "state",
    "kill -KILL $pid; sleep 0.1": "state",
    "kill -TERM $pid": "signals",
    "kill -40 $pid": "signals",
    "cat /proc/$pid/environ; echo x >/proc/$pid/mem; ls /proc/$pid/fd": "",
}
HARM = 'for name in /proc/[0-9]*; do pid=${name#/proc/}; grep -qz "^/tmp/%s$" /proc/$pid/cmdline && { %s; }; done 2>&1; true'


class Hostile(following.Attacked):
    """Programs of one language that change another one's template."""

    def open_all(self):
        container = self.open(languages={"python": python("python"), "other": python("other"), "bash": ["/tmp/bash", "bash", "/tmp/bash"]},
                              env=["PYTHONPATH=/image"])
        container.run(code="", language="other")
        self.assertIsNone(container.next())
        container.await_template()
        return container

    def check_warm(self, container):
        for language in ("python", "other"):
            end = container.run(code="print(input())", language=language, stdin="in")
            self.assertEqual((end.started, bytes(end.out), bytes(end.err)), ("warm", b"in\n", b""))
            self.assertIsNone(container.next())

    def test_a_shell_that_changes_a_template(self):
        container = None
        for harm, what in HARMS.items():
            for template in ("python", "other"):
                with self.subTest(harm=harm, template=template):
                    container = container or self.open_all()
                    container.run(code=HARM % (template, harm), language="bash")
                    doubt = container.next()
                    self.assertEqual(doubt, f"of the waiting interpreter, the {what} changed" if what else None)
                    if doubt:
                        container = None
                    else:
                        self.check_warm(container)

    def test_an_interpreter_that_changes_another_languages_template(self):
        for language, template in (("python", "other"), ("other", "python")):
            container = self.open_all()
            container.run(code=f"import subprocess\nsubprocess.run(['sh', '-c', {HARM % (template, 'chrt -i -p 0 $pid')!r}])", language=language)
            self.assertEqual(container.next(), "of the waiting interpreter, the scheduling changed")

    def test_a_program_that_kills_or_stops_all_others_does_no_harm_to_the_next(self):
        for number, what in (("KILL", "state"), ("STOP", "state"), ("40", "signals")):
            container = self.open_all()
            container.run(code=f"for p in /proc/[0-9]*; do p=${{p#/proc/}}; [ $p = 1 -o $p = $$ ] || kill -{number} $p; done 2>/dev/null; sleep 0.1", language="bash")
            self.assertEqual(container.next(), f"of the waiting interpreter, the {what} changed")

    def test_traces_are_undone_or_found_beside_templates(self):
        def run(container, language, code):
            if language == "python" and code not in (following.PROBE, ""):
                language = "other"
            return container.run(code=code, language=language, timeout_ms=10000)
        self.try_them([one for one in following.ATTACKERS if one[1] in ("python", "bash") and following.NO_LIMIT not in one[0]],
                      self.open_all, run, "warm")


if __name__ == "__main__":
    report.main(base.ENTRY is None and "runners/common/entry has not been built")
