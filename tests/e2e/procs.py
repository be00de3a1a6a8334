"""Processes by /proc: parents and children, open files, memory."""
import contextlib
import os
import re
import signal
import time


STATE, PARENT, BEGAN = 0, 1, 19  # of what /proc/PID/stat has behind the name


def _stat(pid):
    """None: there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


def exists(pid):
    """Alive, and no zombie."""
    found = _stat(pid)
    return found is not None and found[STATE] != "Z"


def parent(pid):
    found = _stat(pid)
    return int(found[PARENT]) if found else 0


def children(pid):
    """In the order of their beginnings, which is not that of their numbers for ever."""
    found = [(_stat(name), int(name)) for name in os.listdir("/proc") if name.isdigit()]
    return [number for _, number in sorted((int(stat[BEGAN]), number) for stat, number in found
                                           if stat and int(stat[PARENT]) == pid and stat[STATE] != "Z")]


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child] + descendants(child)
    return found


def spent(*pids):
    """Seconds of processor time of these and what they have started, also what has ended since."""
    total, todo = 0, list(pids)
    while todo:
        folder = f"/proc/{todo.pop()}"
        try:
            with open(f"{folder}/schedstat", encoding="ascii") as own, open(f"{folder}/stat", encoding="ascii", errors="replace") as stat:
                total += int(own.read().split()[0]) / 1e9
                total += sum(map(int, stat.read().rpartition(")")[2].split()[13:15])) / os.sysconf("SC_CLK_TCK")
            with open(f"{folder}/task/{os.path.basename(folder)}/children", encoding="ascii") as file:
                todo += map(int, file.read().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def open_files(pid):
    """What the process's descriptors point at."""
    folder, found = f"/proc/{pid}/fd", []
    try:
        for name in os.listdir(folder):
            try:
                found.append(os.readlink(f"{folder}/{name}"))
            except OSError:
                pass
    except OSError:
        pass
    return found


def unix_sockets(pid):
    """The paths of the Unix sockets that the process holds."""
    paths = {}
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
        for line in file:
            fields = line.split(None, 7)
            if len(fields) == 8:
                paths[f"socket:[{fields[6]}]"] = fields[7].strip()
    return [paths[name] for name in open_files(pid) if name in paths]


def uid(pid):
    return os.stat(f"/proc/{pid}").st_uid


def status(pid, field):
    """None when there is none, or the process has gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            match = re.search(rf"^{field}:[ \t]*(.*)$", file.read(), re.M)
    except OSError:
        return None
    return match.group(1).strip() if match else None


def commands(name):
    """The processes of sandcgi NAME."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read().split(b"\0")[:2] == [b"sandcgi", name.encode()]:
                    found.append(int(pid))
        except OSError:
            pass
    return found


def is_confined(pid):
    """No way to new rights, and a filter of system calls."""
    return (status(pid, "NoNewPrivs"), status(pid, "Seccomp")) == ("1", "2")


def private_memory(pid):
    """Bytes that belong to this process alone; 0 when it has gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return sum(int(n) for n in re.findall(r"^Private_\w+:\s+(\d+)", file.read(), re.M)) * 1024
    except OSError:
        return 0


def signal_all(pids, number=signal.SIGKILL):
    """To each that is still there: one that ends takes others along."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def stands_still(pid):
    """Is it stopped, or has it ended? In D it waits for a child that has its memory until it executes a program (vfork)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] in "TtZXD"
    except OSError:
        return True


def kill_family(*pids):
    """With all their descendants, which are stopped first: none sees another one's end, and none begins after the look.
    All of them, when they have ended: each holds its sockets until then."""
    family, found = set(), set(pids).union(*map(descendants, pids))
    while found - family:
        family |= found
        signal_all(family, signal.SIGSTOP)
        while not all(map(stands_still, family)):  # it may be forking
            time.sleep(0.01)
        found = set(pids).union(*map(descendants, pids))
    signal_all(family, signal.SIGKILL)
    limit = time.monotonic() + 60
    while any(map(exists, family)) and time.monotonic() < limit:
        time.sleep(0.01)
    return family


def end(process, patience=60):
    """Ends a subprocess.Popen: asked first, forced then."""
    if process.poll() is None:
        process.terminate()
        limit = time.monotonic() + patience
        while process.poll() is None and time.monotonic() < limit:
            time.sleep(0.02)
    if process.poll() is None:
        process.kill()
    process.wait()


def end_group(process, patience=60):
    """The same for a process that leads a group of its own."""
    end(process, patience)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass
