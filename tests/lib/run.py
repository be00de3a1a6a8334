"""Runs the tests: chooses the stages, runs them, tells what happened. Started by tests/run.sh."""
import argparse
import fcntl
import os
import signal
import subprocess
import sys

import lines
import report
import room
import schedule
import stages

LOCK = f"/tmp/sandcgi-{os.environ.get('SANDCGI_TEST_ENGINE_NAME', 'tests')}.lock"
HINT = "These were the main job and each wall, once. Everything: tests/run.sh --all"


def die(text):
    print(f"tests: {text}", file=sys.stderr)
    sys.exit(2)


def parse():
    parser = argparse.ArgumentParser(prog="tests/run.sh", formatter_class=argparse.RawDescriptionHelpFormatter, description=(
        "Installs what the tests need, builds under ASan and UBSan, and tests: without an option the main job and each wall once.\n"
        "Ends in a line of counts, with status 1 when a test failed. The output of a stage stays in build-check/log."), epilog=(
        "stages: " + " ".join(stage.name for stage in stages.STAGES + stages.BY_HAND) + "\n\n"
        "DOCKER_HOST names the engine to use; without one that answers, a Docker Engine of the tests' own is started, and stopped at the end."))
    parser.add_argument("--all", action="store_true", help="everything, with make distcheck (what CI runs)")
    parser.add_argument("--only", metavar="NAME", action="append", default=[],
                        help="a stage; or STAGE:WORDS, those of its tests whose names contain WORDS; or WORDS of end-to-end tests; may be given more than once")
    parser.add_argument("--failed", action="store_true", help="what failed in the last run")
    for stage in stages.BY_HAND:
        parser.add_argument(f"--{stage.name}", dest="only", action="append_const", const=stage.name, help=stage.help)
    parser.add_argument("--list", action="store_true", help="name the end-to-end tests")
    return parser.parse_args()


def split(name):
    """(stage, words) of what --only names."""
    stage, colon, words = name.partition(":")
    if stages.by_name(name):
        return name, None
    if colon and stages.by_name(stage):
        if stages.by_name(stage).words is None:
            die(f"the stage {stage} runs as a whole: tests/run.sh --only {stage}")
        return stage, words
    return "e2e", name


def chosen_by_words(names):
    """(names of stages, their arguments)"""
    arguments = {}
    for name in names:
        stage, words = split(name)
        if stage == "e2e-alone" and words is not None:
            stage = "e2e"
        row = arguments.setdefault(stage, ["--which", "both"] if stage == "e2e" and words is not None else [])
        if words is not None:
            row += [stages.by_name(stage).words] * bool(stages.by_name(stage).words) + [words]
    return arguments


def chosen_failed(before):
    names = {stages.name_of(one) for one in before if one.state == "FAILED" and stages.by_name(one.stage)}
    if not names:
        die("nothing failed in the last run; see tests/run.sh --help for what else to run")
    return chosen_by_words(names)


def choose(options, before):
    """(stages, the arguments of each)"""
    if options.only or options.failed:
        arguments = chosen_failed(before) if options.failed else chosen_by_words(options.only)
        return stages.with_needs(arguments), arguments
    if options.all:
        return list(stages.STAGES), {}
    core = [stage for stage in stages.STAGES if stage.core is not None]
    return core, {stage.name: stage.core for stage in core}


def take_lock():
    """One run at a time: they would end each other's engine. Held until this process ends."""
    if not os.path.exists(LOCK):
        os.close(os.open(LOCK, os.O_RDONLY | os.O_CREAT, 0o644))
    lock = os.open(LOCK, os.O_RDONLY)  # another account may have made it
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print("another run of the tests is at work; waiting until it has ended", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)


def environment():
    return os.environ | {"SANDCGI_TEST_BINARY": os.path.join(stages.BUILD, "sandcgi"), "SANDCGI_TEST_UNSTEADY": "1",
                         "SANDCGI_CONFORMANCE_BINARY": os.path.join(stages.BUILD, "tests/conformance/sandcgi-conformance")}


def main():
    options = parse()
    if options.list:
        return subprocess.run(stages.python("tests/e2e/run.py", "--list"), check=False).returncode
    before = lines.load()
    chosen, arguments = choose(options, before)
    take_lock()
    for sentence in room.lacking():
        die(sentence)
    display = report.Display(before)
    plan = schedule.Schedule(chosen, arguments, environment(), display)
    interrupted = []

    def on_signal(number, _frame):
        interrupted.append(number)
        plan.end()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    try:
        plan.run_all()
    finally:
        if plan.environment.get("SANDCGI_TEST_ENGINE") == "ours":
            subprocess.run([os.path.join(stages.TOP, "tests/lib/engine.sh"), "stop"], check=False)
    if interrupted:
        passed, failed, skipped = display.counts()
        display.say(f"interrupted: {passed} passed, {failed} failed, {skipped} skipped until then; everything that was started has ended")
        return 128 + interrupted[0]
    whole = {run.stage.name for run in display.ended_runs} - set(filter(arguments.get, arguments))
    lines.save(lines.merge(before, whole, display.results))
    return 0 if display.finish(HINT if not (options.all or options.only or options.failed) else None) else 1


if __name__ == "__main__":
    sys.exit(main())
