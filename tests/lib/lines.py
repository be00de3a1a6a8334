"""Lines of tests as all suites print them, and what is kept of the last run."""
import dataclasses
import json
import os
import re

import stages

KEPT = os.path.join(stages.BUILD, "tests.json")
# "ok SENTENCE (1.2 s)", "FAILED …", "unsteady …", "skipped SENTENCE: reason"; automake's words for its scripts.
LINE = re.compile(r"(ok|FAILED|unsteady|skipped) (.+)")
AUTOMAKE = re.compile(r"(PASS|FAIL|SKIP|ERROR|XPASS): (tests/\S+)$")
AUTOMAKE_NAME = re.compile(r"tests/\S+$")
STATES = {"PASS": "ok", "FAIL": "FAILED", "SKIP": "skipped", "ERROR": "FAILED", "XPASS": "FAILED"}
SECONDS = re.compile(r" \((\d+\.\d+) s\)$")


@dataclasses.dataclass
class Result:
    stage: str
    state: str
    sentence: str
    seconds: float = 0.0
    reason: str = ""
    whole: bool = False  # it tells of the stage, not of a test
    detail: list = dataclasses.field(default_factory=list)


def parse(stage, line):
    """The Result that a line tells, or None."""
    found = LINE.match(line)
    if found:
        state, rest = found.groups()
        seconds, reason = SECONDS.search(rest), ""
        if state == "skipped":
            rest, _, reason = rest.rpartition(": ") if ": " in rest else (rest, "", "")
        elif seconds:
            rest = rest[:seconds.start()]
        return Result(stage, state, rest, float(seconds.group(1)) if seconds else 0.0, reason)
    found = AUTOMAKE.match(line)
    return Result(stage, STATES[found.group(1)], found.group(2)) if found else None


class Reader:
    """Takes the lines of a stage one by one; one that is bad is complete when a line comes that is none of its detail."""

    def __init__(self, stage):
        self.stage, self.pending = stage, None

    def feed(self, line):
        """The results that are complete now."""
        one = parse(self.stage, line)
        if not one and self.pending and line.startswith("    "):
            self.pending.detail.append(line)
            return []
        found = self.end()
        self.pending = one
        return found + self.end() if one and one.state in ("ok", "skipped") else found

    def end(self):
        one, self.pending = self.pending, None
        if not one:
            return []
        return inside(one) if AUTOMAKE_NAME.match(one.sentence) else [one]


def inside(one):
    """For a program that make check ran: the tests in its log; the program itself, where the log names none or not why it failed."""
    path = os.path.join(stages.BUILD, one.sentence + ".log")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return [one]
    reader, found = Reader(one.stage), []
    for line in lines:
        if not AUTOMAKE.match(line):
            found += reader.feed(line)
    found += reader.end()
    if found and (one.state == "ok" or any(each.state == "FAILED" for each in found)):
        return found
    if one.state == "FAILED":
        one.detail = ["    " + line for line in lines[-60:]]
    if one.state == "skipped":
        one.reason = next((line for line in reversed(lines) if not AUTOMAKE.match(line)), "")
    return [one]


def load():
    """The results of the last run; none where there was none."""
    try:
        with open(KEPT, encoding="utf-8") as file:
            return [Result(**one) for one in json.load(file)]
    except (OSError, ValueError, TypeError):
        return []


def merge(before, whole, results):
    """The results of the last run and of this, whose stages of these names ran as a whole."""
    again = {(one.stage, one.sentence) for one in results}
    return [one for one in before if one.stage not in whole and (one.stage, one.sentence) not in again] + results


def save(results):
    os.makedirs(stages.BUILD, exist_ok=True)
    with open(KEPT + ".new", "w", encoding="utf-8") as file:
        json.dump([dataclasses.asdict(one) | {"detail": []} for one in results], file)
    os.rename(KEPT + ".new", KEPT)
