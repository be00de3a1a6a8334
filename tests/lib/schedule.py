"""Runs stages beside one another: each as soon as what it needs has ended well and cores are free."""
import os
import signal
import subprocess
import threading
import time

import lines
import stages

# Stages wait for containers and servers half of their time.
CORES = 1.8 * (os.cpu_count() or 1)
# Of a stage. One that hangs is a failure that is told.
DEADLINE_S = 45 * 60
# In which what a stage has started ends after SIGTERM.
END_S = 40
SKIPPED = 77
# A stage ends with this process even when that is killed.
DIE_WITH_US = ["setpriv", "--pdeathsig", "TERM"]


class Run(threading.Thread):
    """A stage under way. tell(result) gets each result when its last line is there."""

    def __init__(self, stage, arguments, environment, tell):
        super().__init__(daemon=True)
        self.stage, self.tell = stage, tell
        self.command, self.environment = [*DIE_WITH_US, *stage.command, *arguments], environment
        self.begun, self.seconds = time.monotonic(), None
        self.results, self.exports = [], {}
        self.process = self.status = self.why = None
        self.ending = False
        self.log = os.path.join(stages.BUILD, "log", stage.name + ".log")
        os.makedirs(os.path.dirname(self.log), exist_ok=True)
        self.start()

    def hindrance(self):
        """Why what needs the stage cannot run; "" when it can."""
        if self.status == 0:
            return ""
        return next((one.reason for one in self.results if one.state == "skipped" and one.whole), f"the stage {self.stage.name} has failed")

    def run(self):
        self.attempt("FAILED" if not self.stage.again else "unsteady")
        if self.stage.again and self.status not in (0, SKIPPED) and not self.ending:
            self.attempt("FAILED", second=True)
        self.judge()
        self.seconds = time.monotonic() - self.begun

    def attempt(self, failed, second=False):
        """failed: the state that a failure gets."""
        reader = lines.Reader(self.stage.name)
        with open(self.log, "a" if second else "w", encoding="utf-8") as log:
            with subprocess.Popen(self.command, env=self.environment, cwd=stages.TOP, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace", start_new_session=True) as self.process:
                alarm = threading.Timer(DEADLINE_S, self.end, (f"took longer than {DEADLINE_S} s",))
                alarm.start()
                for line in self.process.stdout:
                    log.write(line)
                    log.flush()
                    if not self.stage.whole:
                        self.take(reader.feed(line.rstrip("\n")), failed, second)
                    name, equals, value = line.rstrip("\n").partition("=")
                    if self.stage.exports and equals and name.replace("_", "").isalnum() and name.isupper():
                        self.exports[name] = value
                self.take(reader.end(), failed, second)
                self.status = self.process.wait()
                alarm.cancel()

    def take(self, found, failed, second):
        """Of a second attempt only what failed at one of both is told."""
        unsteady = {one.sentence for one in self.results if one.state == "unsteady"} if second else ()
        for one in found:
            if one.state == "FAILED":
                one.state = failed
            if one.state == "FAILED" or not second or one.sentence in unsteady:
                self.results.append(one)
                self.tell(one)

    def judge(self):
        """A stage that ends badly without naming a failure is one itself."""
        name = self.stage.whole or self.stage.name
        if self.ending and not self.why:
            return
        if self.status == SKIPPED:
            self.add("skipped", name, self.last_lines(1)[0].strip())
        elif self.status and not any(one.state == "FAILED" for one in self.results):
            self.add("FAILED", f"{name} {self.why or f'ended with status {self.status}'}; its output is in {self.log}", detail=self.last_lines(40))
        elif self.status == 0 and self.stage.whole:
            self.add("ok", name)
        elif self.status == 0 and self.stage.tests and not self.results:
            self.add("FAILED", f"{name} ran no test")

    def add(self, state, sentence, reason="", detail=()):
        one = lines.Result(self.stage.name, state, sentence, reason=reason, whole=True, detail=["    " + text for text in detail])
        self.results.append(one)
        self.tell(one)

    def last_lines(self, n):
        with open(self.log, encoding="utf-8") as file:
            return file.read().splitlines()[-n:] or ["it printed nothing"]

    def end(self, why=None):
        """Asks what the stage has started to end, and makes it after a while."""
        self.ending, self.why = True, why
        self.signal(signal.SIGTERM)
        timer = threading.Timer(END_S, self.signal, (signal.SIGKILL,))
        timer.daemon = True
        timer.start()

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, AttributeError):
            pass


class Schedule:
    """arguments: of each stage, by name. display tells what happens: result(one), begun(run), ended(run), tick(runs)."""

    def __init__(self, chosen, arguments, environment, display):
        self.waiting, self.arguments, self.environment, self.display = list(chosen), arguments, environment, display
        self.under_way = []
        self.ended = {}  # name -> why what needs it cannot run; "" when it can

    def run_all(self):
        while self.waiting or self.under_way:
            self.begin_what_may()
            time.sleep(0.1)
            for run in [one for one in self.under_way if not one.is_alive()]:
                self.under_way.remove(run)
                self.ended[run.stage.name] = run.hindrance()
                self.environment |= run.exports
                self.display.ended(run)
            self.display.tick(self.under_way)

    def begin_what_may(self):
        for stage in list(self.waiting):
            hindrance = next(filter(None, map(self.ended.get, stage.needs)), None)
            if hindrance:
                self.waiting.remove(stage)
                self.ended[stage.name] = hindrance
                self.display.result(lines.Result(stage.name, "skipped", stage.name, reason=hindrance, whole=True))
            elif not all(self.ended.get(name) == "" for name in stage.needs):
                continue
            elif self.has_room(stage):
                self.waiting.remove(stage)
                run = Run(stage, self.arguments.get(stage.name, []), dict(self.environment), self.display.result)
                self.under_way.append(run)
                self.display.begun(run)
            elif not stage.alone:
                return  # smaller ones of later would take the room for ever

    def has_room(self, stage):
        if stage.alone:
            return not self.under_way and all(one.alone for one in self.waiting)
        return not self.under_way or sum(run.stage.cores for run in self.under_way) + stage.cores <= CORES

    def end(self):
        """Everything ends; what has not begun does not."""
        self.waiting.clear()
        for run in self.under_way:
            run.end()
