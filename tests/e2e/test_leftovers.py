"""What a killed run of the tests leaves is removed by the next one."""
import os
import signal
import subprocess
import sys

import leftovers
from harness import IS_ROOT, TOP, Skip, at_test_end, check, contains, equal, new_folder, test, wait_until

RUN = """
import subprocess, sys, time
import leftovers
folder = leftovers.make_folder("sandcgi-e2e-", sys.argv[1])
started = subprocess.Popen(["setsid", "sh", "-c", f"sleep 600; : {folder}/x"])
subprocess.run(["mkdir", f"{folder}/mounted"], check=True)
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", f"{folder}/mounted"], check=True)
print(folder, started.pid, flush=True)
time.sleep(600)
"""


def _run(where):
    """(process, its folder, the process that it has started)"""
    process = subprocess.Popen([sys.executable, "-c", RUN, where], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": f"{TOP}/tests/lib"})
    at_test_end(process.kill)
    folder, child = process.stdout.readline().split()
    return process, folder, int(child)


@test("what a killed run of the tests leaves is found and removed; what lives, and a reader's own program, is left alone")
def _():
    if not IS_ROOT:
        raise Skip("needs root to mount")
    place = new_folder("place")
    before = leftovers.PLACES
    at_test_end(setattr, leftovers, "PLACES", before)
    leftovers.PLACES = (f"{place}/sandcgi-*",)
    process, folder, child = _run(place)
    reader = subprocess.Popen(["sleep", "600"], env={"LOG": f"{folder}/log"})  # as somebody who reads a log there
    at_test_end(reader.kill)
    os.mkdir(f"{place}/sandcgi-foreign")
    leftovers.remove()
    check(os.path.ismount(f"{folder}/mounted") and process.poll() is None, "a living run is left alone")
    process.send_signal(signal.SIGKILL)
    process.wait()
    said = leftovers.remove()
    for words in ("2 processes", "1 mount", "1 folder"):
        contains(said, words)
    wait_until(lambda: not os.path.exists(f"/proc/{child}"), 10, "its process has ended")
    equal(os.listdir(place), ["sandcgi-foreign"])
    equal(reader.poll(), None, "the reader's end")
