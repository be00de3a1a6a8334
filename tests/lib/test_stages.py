#!/usr/bin/env python3
"""The runner of tests/run.sh: what it does with stages that end well, badly, late, or that need one another; what it shows."""
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import lines  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
import schedule  # noqa: E402
import stages  # noqa: E402


def stage(name, script, **more):
    return stages.Stage(name, ["sh", "-c", script, "tests"], **more)


class Runner(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        before = stages.BUILD
        self.addCleanup(setattr, stages, "BUILD", before)
        stages.BUILD = self.folder
        self.shown = io.StringIO()

    def run_stages(self, *chosen, end_at=None):
        """The results, as words. end_at: a file; when it is there all is asked to end."""
        rows = stages.STAGES
        self.addCleanup(setattr, stages, "STAGES", rows)
        stages.STAGES = chosen
        self.display = report.Display([], self.shown)
        plan = schedule.Schedule(chosen, {}, os.environ | {"TMPDIR": self.folder}, self.display)
        if end_at:
            def end():
                while not os.path.exists(end_at):
                    time.sleep(0.05)
                plan.end()
            threading.Thread(target=end, daemon=True).start()
        plan.run_all()
        return [f"{one.state} {one.stage}: {one.sentence}" for one in self.display.results]

    def test_results_are_counted_and_a_failure_tells_why_and_how_it_is_run_again(self):
        found = self.run_stages(stage("some", 'echo "ok one (1.5 s)"; echo "FAILED it\'s two (2.0 s)"; echo "    since"; echo "skipped three: no disk"; exit 1', words=""))
        self.assertEqual(found, ["ok some: one", "FAILED some: it's two", "skipped some: three"])
        self.assertFalse(self.display.finish(None))
        shown = self.shown.getvalue()
        for words in ("FAILED some: it's two\n    since\n", "this one: tests/run.sh --only 'some:it'\\''s two'", "     2.0 s  some: it's two", "some: three: no disk"):
            self.assertIn(words, shown)
        self.assertTrue(shown.endswith("\n1 passed, 1 failed, 1 skipped\n"))

    def test_a_stage_that_ends_badly_without_a_word_is_a_failure_with_its_last_lines(self):
        self.assertEqual(self.run_stages(stage("some", "echo ok one; echo broken; exit 3")),
                         ["ok some: one", f"FAILED some: some ended with status 3; its output is in {self.folder}/log/some.log"])
        self.assertIn("    broken", self.shown.getvalue())

    def test_a_stage_without_a_test_is_a_failure_unless_it_says_that_it_cannot_run(self):
        self.assertCountEqual(self.run_stages(stage("none", "true"), stage("away", "echo no engine; exit 77"), stage("made", "true", tests=False)),
                         ["FAILED none: none ran no test", "skipped away: away"])

    def test_what_needs_a_stage_waits_for_it_and_does_not_begin_when_it_fails(self):
        found = self.run_stages(stage("first", "sleep 0.3; echo NAME=made", exports=True, tests=False), stage("second", 'echo "ok $NAME"', needs=("first",)),
                                stage("bad", "exit 1"), stage("third", "echo ok never", needs=("bad",)), stage("fourth", "echo ok never", needs=("third",)))
        self.assertIn("ok second: made", found)
        self.assertIn("skipped third: third", found)
        self.assertEqual([one.reason for one in self.display.results if one.stage == "fourth"], ["the stage bad has failed"])
        self.assertIn("skipped fourth: fourth", found)
        self.assertNotIn("never", " ".join(found))

    def test_nothing_runs_beside_a_stage_that_is_alone(self):
        mark = f"{self.folder}/mark"
        beside = f'touch {mark}.$0.$$; sleep 0.3; rm {mark}.*.$$; echo "ok done"'
        found = self.run_stages(stage("alone", f'ls {mark}.* 2>/dev/null && echo "FAILED beside" || echo "ok alone"', alone=True), stage("one", beside), stage("two", beside))
        self.assertEqual(found[-1], "ok alone: alone")

    def test_a_large_stage_does_not_wait_for_small_ones_of_later(self):
        found = self.run_stages(stage("first", "sleep 0.3; echo ok small", cores=1), stage("second", "sleep 0.3; echo ok large", cores=schedule.CORES),
                                stage("third", "echo ok small", cores=0.1))
        self.assertEqual(found, ["ok first: small", "ok second: large", "ok third: small"])

    def test_a_suite_with_a_second_attempt_is_unsteady_when_that_passes(self):
        script = f'test -e {self.folder}/again && echo "ok one" && exit; touch {self.folder}/again; echo "FAILED one"; exit 1'
        self.assertEqual(self.run_stages(stage("some", script, again=True)), ["unsteady some: one", "ok some: one"])

    def test_interrupted_what_was_started_ends_and_nothing_else_begins(self):
        began = time.monotonic()
        found = self.run_stages(stage("long", f"echo $$ >{self.folder}/pid; echo ok one; touch {self.folder}/told; sleep 600; echo ok two"), stage("next", "echo ok three", needs=("long",)), end_at=f"{self.folder}/told")
        self.assertLess(time.monotonic() - began, 60)
        self.assertEqual(found, ["ok long: one"])
        with open(f"{self.folder}/pid", encoding="ascii") as file, self.assertRaises(ProcessLookupError):
            os.kill(int(file.read()), 0)

    def test_results_are_kept_and_what_failed_is_chosen_again(self):
        kept = lines.KEPT
        self.addCleanup(setattr, lines, "KEPT", kept)
        lines.KEPT = f"{self.folder}/tests.json"
        lines.save([lines.Result("e2e", "ok", "runs: a"), lines.Result("e2e", "FAILED", "runs: b"), lines.Result("nginx", "FAILED", "c")])
        self.assertEqual(run.chosen_failed(lines.load()), {"e2e": ["--which", "both", "--only", "runs: b"], "nginx": []})

    def test_what_failed_and_was_not_run_again_stays_known(self):
        before = [lines.Result("e2e", "FAILED", "a"), lines.Result("e2e", "FAILED", "b"), lines.Result("unit", "FAILED", "c")]
        found = lines.merge(before, {"unit"}, [lines.Result("e2e", "ok", "b"), lines.Result("unit", "ok", "d")])
        self.assertEqual([(one.state, one.sentence) for one in found], [("FAILED", "a"), ("ok", "b"), ("ok", "d")])


class UnitTests(unittest.TestCase):
    """`unit_tests NAME` in a folder of a build whose programs and scripts say that they run."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(setattr, stages, "BUILD", stages.BUILD)
        stages.BUILD = self.folder
        listed = 'if [ "$1" = --list ]; then echo %s; seq 100000; else echo "ran $1"; fi'
        for path, text in (("tests/unit/one/unit", listed % "a_function"), ("tests/fuzz/replay", listed % "a_seed"),
                           ("tests/lint/words.sh.log", "ok Words: a sentence (0.1 s)\n")):
            file = pathlib.Path(self.folder, path)
            file.parent.mkdir(parents=True)
            file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            file.chmod(0o755)
        pathlib.Path(self.folder, "Makefile").write_text("check:\n\t@echo ran $(TESTS)\n", encoding="utf-8")

    def ran(self, *names):
        command = stages.shell('unit_tests "$@"')
        done = subprocess.run([*command, *names], capture_output=True, text=True, timeout=60, check=True)
        return [line for line in done.stdout.splitlines() if line.startswith("ran ")]

    def test_a_name_runs_the_program_that_lists_it_or_the_script_whose_log_has_it(self):
        for name, wanted in (("a_function", ["ran a_function"]), ("a_seed", ["ran a_seed"]), ("Words: a sentence", ["ran tests/lint/words.sh"]),
                             ("tests/lint/other.sh", ["ran tests/lint/other.sh"]), ("nothing", [])):
            self.assertEqual(self.ran(name), wanted)


class Names(unittest.TestCase):
    def test_every_stage_is_known_and_what_it_needs_comes_before_it(self):
        known = []
        for one in stages.STAGES + stages.BY_HAND:
            self.assertLessEqual(set(one.needs), set(known), one.name)
            known.append(one.name)

    def test_a_name_is_a_stage_or_words_of_one_or_of_end_to_end_tests(self):
        self.assertEqual(run.split("nginx"), ("nginx", None))
        self.assertEqual(run.split("unit:base/test_buf exactly"), ("unit", "base/test_buf exactly"))
        self.assertEqual(run.split("H-10: tokens"), ("e2e", "H-10: tokens"))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    unittest.main()
