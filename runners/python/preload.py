"""What an interpreter does ahead when the libraries of its programs are known: imports, and their first paths."""

import gc
import importlib
import io
import sys
import warnings


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
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    axes.plot([1, 2, 3], [1, 4, 9], "o-", label="x")
    axes.bar([1, 2], [3, 4])
    axes.set(title="x", xlabel="x", ylabel="x")
    axes.legend()
    plt.savefig(io.BytesIO())
    plt.savefig(io.BytesIO(), dpi=100, bbox_inches="tight")
    plt.close("all")


PATHS = {"numpy": numpy_paths, "pandas": pandas_paths, "matplotlib.pyplot": pyplot_paths}


def quietly(work, *arguments):
    """A library that is missing or broken is the program's to find out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            work(*arguments)
        except Exception:
            pass


def settle():
    """What is loaded stays: neither a run's collections nor its end go through it again.

    A cycle that is frozen is never found, so nothing that it holds is taken apart when the interpreter ends. Only
    `__main__` has to end as ever: emptied, its dictionary is nobody's business for a collection, and thus not frozen.
    """
    main = sys.modules["__main__"].__dict__
    names = dict(main)
    main.clear()
    gc.collect()
    kept = [thing for thing in gc.get_objects() if not isinstance(thing, (io.IOBase, dict)) or thing in NAMESPACES]
    kept.append(kept)
    gc.freeze()
    main.update(names)


def steps(names):
    """Pairs of a name and the work that belongs to it, in the order in which it is to be done."""
    for name in names:
        yield name, lambda: quietly(importlib.import_module, name)
        if name in PATHS:
            yield name, lambda: quietly(PATHS[name])
    yield names[-1] if names else "", settle
