#!/usr/bin/env python3
"""The smallest interpreter that can wait, to try the entry program without a real one: its script is a shell script.

`hook.py SCRIPT` speaks runners/common/entry.h on descriptor 3 when that is a socket; with HOOK_TEMPLATE as a template.
HOOK_WORD makes it misbehave: `late`
comes up slowly, `busy` after much work, `dead` dies before it is up, `mute` never answers, `refuse` says no, `dying` dies
with the program in its hands, `lost` dies when a template has forked it, `rather` loads nothing for a program, `broken` dies
when it is asked to.
"""

import os
import socket
import stat
import sys
import time

HOOK = 3


def become(script, packet):
    items = packet[1:].split(b"\0")[:-1]
    args = [item[1:] for item in items if item[:1] == b"A"]
    for item in items:
        if item[:1] == b"E":
            name, _, value = item[1:].partition(b"=")
            os.environb[name] = value
    os.write(HOOK, b"Y")
    os.close(HOOK)
    os.environ["WAY"] = "warm"
    os.execvp("sh", ["sh", script, *args])


def preload(names):
    """Each name takes its time: `a0.5` half a second."""
    os.set_blocking(HOOK, False)
    for name in names:
        os.write(HOOK, b"S" + name)
        try:
            return os.read(HOOK, 65536)
        except BlockingIOError:
            time.sleep(float(name[1:]))
    os.set_blocking(HOOK, True)
    os.write(HOOK, b"D")
    return None


def fork(fds):
    """True in the new child of the entry program's."""
    reader, writer = os.pipe()
    between = os.fork()
    if between == 0 and os.fork() > 0:
        os._exit(0)
    os.close(writer)
    if between > 0:
        os.waitpid(between, 0)
        for fd in (reader, *fds):
            os.close(fd)
        return False
    os.read(reader, 1)
    os.setsid()
    for place, fd in enumerate(fds):
        os.dup2(fd, place)
    os.closerange(4, max(fds) + 1)
    return True


def serve(word):
    """A template's work; returns in a child."""
    names, loading = [], False
    while True:
        if loading and not names:
            os.write(HOOK, b"D")
            loading = False
            os.environ["LOADED"] = "loaded"
        if names:
            os.write(HOOK, b"S" + names[0])
        with socket.socket(fileno=os.dup(HOOK)) as server:
            try:
                os.set_blocking(HOOK, not names)
                packet, fds, _, _ = socket.recv_fds(server, 65536, 4)
            except BlockingIOError:
                time.sleep(float(names.pop(0)[1:]))
                continue
        if not packet:
            sys.exit(0)
        if names:
            names, loading = [], False
            os.write(HOOK, b"S")
        if packet[:1] == b"L":
            if word == "broken":
                os._exit(1)
            for name in packet[1:].split():
                time.sleep(float(name[1:]))
                os.environ["DEMANDED"] = os.environ.get("DEMANDED", "") + name.decode()
            os.write(HOOK, b"N" if word == "rather" else b"L")
        if packet == b"F" and fork(fds):
            return
        if packet == b"T" and fork(fds):
            os.write(HOOK, b"U%d" % os.getpid())
        if packet[:1] == b"P":
            names, loading = packet[1:].split(), True


def waits():
    try:
        return stat.S_ISSOCK(os.fstat(HOOK).st_mode)
    except OSError:
        return False


def main():
    if not waits():
        os.execvp("sh", ["sh", *sys.argv[1:]])
    script, word = sys.argv[-1], os.environ.pop("HOOK_WORD", "")
    if word == "late":
        time.sleep(0.5)
    while word == "busy" and time.process_time() < 0.5:
        pass
    if word == "dead":
        sys.exit(1)
    if "HOOK_TEMPLATE" in os.environ:
        serve(word)
        if word == "lost":
            os._exit(0)
    os.write(HOOK, b"U%d" % os.getpid())
    while True:
        packet = os.read(HOOK, 65536)
        if not packet:
            sys.exit(0)
        if packet[:1] == b"P":
            packet = preload(packet[1:].split())
        if not packet:
            continue
        if word == "mute":
            time.sleep(60)
        if word == "dying":
            sys.exit(1)
        if word == "refuse":
            os.write(HOOK, b"N")
        else:
            become(script, packet)


if __name__ == "__main__":
    main()
