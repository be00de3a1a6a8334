#!/usr/bin/env python3
"""The entry program's filter of system calls, from inside of a run and of a command. No engine is needed.

The calls are made as root with its capabilities where the tests are root's, and with arguments that do nothing: so the kernel's
own refusals are others than the filter's.
"""

import json
import pathlib
import platform
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import report  # noqa: E402
import sbx  # noqa: E402
import test_entry  # noqa: E402
from test_entry import TOP, Case  # noqa: E402

ERRORS = {"EPERM": 1, "ENOSYS": 38, "EPROTONOSUPPORT": 93, "EAFNOSUPPORT": 97}

# Prints what each call of a list [[number, argument, …], …] fails with; 0: it does not.
PROBE = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
found = []
for number, *arguments in json.loads(sys.argv[1]):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    found.append(ctypes.get_errno() if result == -1 else 0)
print(json.dumps(found))
"""

# What programs need, with the filter.
WORKS = """
import multiprocessing, os, pty, socket, subprocess, threading
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6):
    socket.socket(family, socket.SOCK_STREAM).close()
for a in socket.socketpair() + (socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0),):
    a.close()
socket.if_nameindex()
thread = threading.Thread(target=lambda: print("thread", flush=True)); thread.start(); thread.join()
print(subprocess.run(["sh", "-c", "echo child | cat"], capture_output=True, text=True).stdout, end="", flush=True)
child = os.fork()
if child == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
import ctypes
assert ctypes.CDLL(None).unshare(0x400) == 0  # CLONE_FILES
"""

# getpid of i386: what it returns, if the kernel has these calls at all.
I386 = """
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex("b814000000cd80c3"))
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())
"""


def rows_of_program():
    """{call: error} of the table in calls.c."""
    text = (TOP / "runners/common/calls.c").read_text()
    return dict(re.findall(r"\{(?:SYS|CALL)_(\w+), (E\w+), ", text))


def rows_of_page():
    """The same of the page."""
    rows = re.findall(r"^\| (`.*?`) \| (E\w+) \|", (TOP / "runners/calls.md").read_text(), re.M)
    return {call: error for calls, error in rows for call in re.findall(r"`(\w+)`", calls)}


def numbers():
    """{call: its number here}: of the C library's headers, and those that the program brings itself."""
    text = "#include <sys/syscall.h>\n" + "".join(f"#ifdef SYS_{c}\n{c}=SYS_{c}\n#endif\n" for c in rows_of_program())
    out = subprocess.run(["cc", "-E", "-P", "-"], input=text, capture_output=True, text=True, check=True).stdout
    found = {name: int(number) for name, number in re.findall(r"^(\w+)=(\d+)$", out, re.M)}
    own = re.search(r"enum \{(.*?)\};", (TOP / "runners/common/calls.c").read_text(), re.S).group(1)
    last = 0
    for name, number in re.findall(r"CALL_(\w+)(?: = (\d+))?,", own):
        last = int(number) if number else last + 1
        assert found.get(name, last) == last, f"{name} is {found[name]}, not {last}"
        found[name] = last
    return found


class Calls(Case):
    """Where we are root, with its capabilities."""

    def probe(self, calls):
        """What each fails with in a run; the same in a command."""
        argument = json.dumps(calls)
        found = []
        for r in (sbx.run(self.command(sys.executable, self.script), sbx.program(PROBE, args=[argument])),
                  sbx.run(self.command(), sbx.record("X", sbx.RUN, sbx.items(sys.executable, "-c", PROBE, argument)))):
            self.check_end(r)
            found.append(json.loads(bytes(r.out)))
        self.assertEqual(found[0], found[1])
        return found[0]

    def test_the_page_has_the_table_of_the_program(self):
        self.assertGreater(len(rows_of_program()), 30)
        self.assertEqual(rows_of_page(), rows_of_program())
        newest = re.search(r"^#define NEWEST (\d+)$", (TOP / "runners/common/calls.c").read_text(), re.M).group(1)
        self.assertIn(f"calls later than number {newest} |", (TOP / "runners/calls.md").read_text())

    def test_each_call_of_the_table_is_refused_in_a_run_and_in_a_command(self):  # H-73
        number = numbers()
        expected = {call: ERRORS[error] for call, error in rows_of_program().items()}
        errors = self.probe([[number[call]] + [-1] * 6 for call in expected])
        self.assertEqual(dict(zip(expected, errors)), expected)

    def test_only_unix_and_internet_sockets_and_routes_open(self):  # H-73
        number = numbers()["socket"]
        # key, routes' other protocol, packet, generic netlink, crypto, vsock, and beyond
        refused = [(15, 3, 2), (16, 3, 16), (17, 3, 0), (16, 3, 9), (38, 5, 0), (40, 1, 0), (200, 1, 0)]
        # MPTCP, UDP-Lite, SCTP, DCCP: the first two open without the filter
        protocols = [(2, 1, 262), (10, 1, 262), (2, 2, 136), (2, 1, 132), (10, 6, 33)]
        self.assertEqual(self.probe([[number, *arguments] for arguments in protocols]), [ERRORS["EPROTONOSUPPORT"]] * len(protocols))
        allowed = [(1, 1, 0), (2, 1, 0), (10, 2, 0), (16, 3, 0), (2, 1, 6), (10, 2, 17)]
        self.assertEqual(self.probe([[number, *arguments] for arguments in refused]), [ERRORS["EAFNOSUPPORT"]] * len(refused))
        self.assertEqual(self.probe([[number, *arguments] for arguments in allowed]), [0] * len(allowed))

    def test_each_namespace_is_refused(self):  # H-73
        number = numbers()
        flags = [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]
        calls = [[number["unshare"], flag] for flag in flags + [0x80]] + [[number["clone"], flag | 17, 0, 0, 0, 0] for flag in flags]
        self.assertEqual(self.probe(calls), [ERRORS["EPERM"]] * len(calls))

    def test_calls_that_the_table_does_not_know_do_not_exist(self):  # H-73
        self.assertEqual(self.probe([[470], [4000], [0x40000000 + 39]]), [ERRORS["ENOSYS"]] * 3)
        if platform.machine() == "x86_64":
            r = sbx.run(self.command(sys.executable, self.script), sbx.program(I386))
            self.assertTrue(r.report["signal"] == 11 or bytes(r.out) == b"-38\n", r.out)  # the signal: this kernel has none of i386

    def test_programs_have_what_they_need(self):
        r = sbx.run(self.command(sys.executable, self.script), sbx.program(WORKS))
        self.assertEqual((bytes(r.out), bytes(r.err)), (b"thread\nchild\n7\n", b""))
        self.check_end(r)


@unittest.skipIf(test_entry.NAMESPACE is None, "the system allows no namespaces")
class InNamespace(Calls):
    """As the first process of a container."""
    prefix = test_entry.NAMESPACE


if __name__ == "__main__":
    report.main(test_entry.ENTRY is None and "runners/common/entry has not been built")
