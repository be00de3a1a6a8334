"""Starts and ends the server of tests/conformance/serve; which processes are its own is noted in a file of this account and clone."""
import hashlib
import json
import os
import shutil
import signal
import sys
import time

import house
import harness
import sites

CLONE = hashlib.sha256(harness.TOP.encode()).hexdigest()[:12]
NOTE = os.path.join(os.environ.get("XDG_RUNTIME_DIR") or "/tmp", f"sandcgi-conformance-{os.getuid()}-{CLONE}.json")


def start_time(pid):
    """Tells a process from a later one with the same number; None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
            return None if fields[0] == "Z" else fields[19]
    except OSError:
        return None


def end(pid, started):
    """Ends what was started, and nothing else."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if start_time(pid) != started:
            return
        os.kill(pid, number)
        limit = time.monotonic() + 15
        while start_time(pid) == started and time.monotonic() < limit:
            time.sleep(0.05)


def stop():
    try:
        # A file of another account of this name is not obeyed.
        with open(os.open(NOTE, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                sys.exit(f"serve: {NOTE} belongs to another account; remove it, then try again")
            note = json.load(file)
    except OSError:
        return False
    for pid, started in note["processes"]:
        end(pid, started)
    shutil.rmtree(note["folder"], ignore_errors=True)
    os.unlink(NOTE)
    return True


def start():
    stop()
    if not os.access(house.FIXTURES, os.X_OK):
        sys.exit(f"serve: {house.FIXTURES} is not there; build it with: make tests/conformance/sandcgi-conformance")
    site = house.House()
    sites.DIE_WITH_US.clear()  # it outlives this script
    try:
        site.start()
    except BaseException:
        sys.stderr.write(site.log()[-2000:])
        site.stop()
        harness.close()
        raise
    processes = [(one.pid, start_time(one.pid)) for one in (site.nginx_process, site.process)]
    with open(os.open(NOTE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w", encoding="utf-8") as file:
        json.dump({"processes": processes, "folder": harness.scratch()}, file)
    print(site.url(), site.token, flush=True)


def main():
    if sys.argv[1:] == ["--stop"]:
        print("stopped" if stop() else "nothing to stop")
    else:
        start()


if __name__ == "__main__":
    main()
