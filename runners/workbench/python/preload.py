"""What a warm interpreter loads before a program comes: imports, and their first paths."""

import contextvars
import gc
import importlib
import io
import linecache
import select
import sys
import time
import warnings

# Of the processor time that the container may use: a program that comes meanwhile must find some left.
SHARE = 0.6


def numpy_paths():
    import numpy

    numpy.linalg.svd(numpy.ones((4, 4)))
    numpy.sort(numpy.arange(8.0)).mean()


def pandas_paths():
    import pandas

    frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "x"], "c": [0.5, 1.5, 2.5]})
    str(frame.describe())
    str(frame.groupby("b").sum(numeric_only=True))
    frame.merge(frame, on="a")
    pandas.read_csv(io.StringIO(frame.to_csv()))
    pandas.to_datetime(["2020-01-01", "2020-01-02"])


def pyplot_paths():
    import matplotlib.font_manager
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    axes.plot([1, 2, 3], [1, 4, 9], "o-", label="x")
    axes.bar([1, 2], [3, 4])
    axes.set(title="x", xlabel="x", ylabel="x")
    axes.legend()
    plt.savefig(io.BytesIO())
    plt.savefig(io.BytesIO(), dpi=100, bbox_inches="tight")
    plt.close("all")
    matplotlib.font_manager._get_font.cache_clear()  # it holds open files


PATHS = {"numpy": numpy_paths, "pandas": pandas_paths, "matplotlib.pyplot": pyplot_paths}


def attempt(work, *arguments):
    """A library that is missing or broken is the program's to find out; so are the contexts it changes."""
    try:
        contextvars.copy_context().run(work, *arguments)
    except Exception:
        pass


def bring_in(name):
    """Imports a library, quietly. The filters that it adds stay."""
    warnings.simplefilter("ignore")
    quiet = warnings.filters[0]
    gc.disable()  # there is next to no garbage in an import
    try:
        attempt(importlib.import_module, name)
    finally:
        gc.enable()
        warnings.filters.remove(quiet)


def walk(name):
    """Goes the first paths of a library that has some here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        attempt(PATHS.get(name, int))


def bring_in_now(names):
    """What a program that waits needs. Its paths are walked, and it settles, when that is over."""
    for name in names:
        bring_in(name)
    linecache.clearcache()


def read_numbers(*paths):
    """The numbers in the files; a ValueError says that one of them has a word instead."""
    text = ""
    for path in paths:
        with open(path) as file:
            text += file.read() + " "
    return [int(word) for word in text.split()]


def processors():
    """How many the container may use on average; 0: as many as there are."""
    for paths in (("/sys/fs/cgroup/cpu.max",), ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us")):
        try:
            quota, period = read_numbers(*paths)
            return max(0, quota / period)
        except (OSError, ValueError):
            pass
    return 0


class Pace:
    """Who has used up what a container may in a while is stopped until that is over, and so would be the program."""

    def __init__(self, hook):
        self.rate = processors() * SHARE
        self.began = time.monotonic()
        self.used = time.process_time()
        self.hook = select.poll()
        self.hook.register(hook, select.POLLIN)

    def rest(self):
        """Until it has been as long as what was used takes at that rate, or something comes."""
        if not self.rate:
            return
        due = self.began + (time.process_time() - self.used) / self.rate
        self.hook.poll(max(0, due - time.monotonic()) * 1000)


class Curtain:
    """At the interpreter's end, takes the preloaded modules out of its way: to clear each of them by itself
    would be half of the work. Those that the program hung something on stay, so that this ends as ever. It hangs on a
    function of site's that goes at the moment at which all modules go."""

    def __init__(self, names):
        self.rooms = [(name, vars(sys.modules[name]), len(vars(sys.modules[name]))) for name in names]

    def __del__(self, sys=sys):
        if sys.path is None:
            for name, room, size in self.rooms:
                if len(room) == size:
                    sys.modules[name] = None


def settle(before):
    """What is loaded stays: neither a run's collections nor its end go through it again.

    A cycle that is frozen is never found, so nothing that it holds is taken apart when the interpreter ends. warm.so
    takes `__main__` out of that.
    """
    linecache.clearcache()
    gc.collect()
    main = sys.modules["__main__"]
    hanger = sys.__interactivehook__
    mortal = {id(thing) for thing in (main, main.__dict__, hanger, hanger.__dict__)}
    kept = [thing for thing in gc.get_objects() if id(thing) not in mortal and not isinstance(thing, io.IOBase)]
    kept.append(kept)
    hanger.curtain = Curtain([name for name in sys.modules if name not in before])
    gc.freeze()


def steps(names, before, walked):
    """Pairs of a name and the work that belongs to it, in the order in which it is to be done. before: the modules that were
    there without it; walked: the names whose first paths have been gone."""
    for name in names:
        yield name, lambda: bring_in(name)
        if name not in walked:
            yield name, lambda: (walk(name), walked.add(name))
    yield names[-1] if names else "", lambda: settle(before)
