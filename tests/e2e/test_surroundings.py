"""What a run of the tests does about its surroundings: too little room, what a killed run has left."""
import os
import signal
import subprocess
import sys

import leftovers
import room
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
    reader = subprocess.Popen(["sleep", "600"], env={"LOG": f"{folder}/log"})  # a reader's program, which names the folder
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


@test("a run of the tests that has too little room says before it starts where, how much there is and how much it needs")
def _():
    if not IS_ROOT:
        raise Skip("needs root to mount")
    place = new_folder("full")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", place], check=True)
    at_test_end(subprocess.run, ["umount", place])
    equal(room.lacking([(place, 1)]), [f"the tests need 1 GB free for {place}, where 0.1 GB are: make room, then try again"])
    equal(room.lacking([(place, 0)]), [])
