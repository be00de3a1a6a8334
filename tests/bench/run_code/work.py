"""The programs that are measured; every way to run them gets the same text."""
from dataclasses import dataclass


class LeftOut(Exception):
    """This way of running cannot be measured here; the text says why."""


@dataclass(frozen=True)
class Work:
    key: str
    name: str
    language: str
    code: str
    proof: str  # stands in the output of a run that went well
    tier: str   # the tier of a warm container that it needs
    goal: float = 0.0  # of the bare interpreter's median, through the whole stack


PRINT = Work("print", "print(1)", "python", "print(1)\n", "1", "started", 0.5)
PANDAS = Work("pandas", "pandas describe", "python", """import pandas as pd
frame = pd.DataFrame({"a": range(1000), "b": [n % 7 * 1.5 for n in range(1000)]})
print(frame.describe())
""", "mean", "preloaded", 0.08)
SAVEFIG = Work("savefig", "matplotlib savefig", "python", """import matplotlib.pyplot as plt
plt.plot([1, 4, 9, 16])
plt.title("squares")
plt.savefig("plot.png")
print("saved")
""", "saved", "preloaded", 0.2)
BUN = Work("bun", "Bun console.log", "typescript", "console.log(1)\n", "1", "started", 0.5)
WORKS = (PRINT, PANDAS, SAVEFIG, BUN)
