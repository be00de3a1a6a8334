#!/usr/bin/env python3
"""How far programs get beyond what they may take of the disk, and for how long, on a small file system; prints figures.
DOCKER_HOST names the engine, SANDCGI_TEST_BINARY the program (an ordinary build, without sanitizers). Needs root."""
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../e2e")]

# pylint: disable=wrong-import-position
import harness  # noqa: E402
import sites  # noqa: E402

MIB = 1 << 20
QUOTA, FILES = 256 * MIB, 5000
FALLOCATE = """import os
try:
    for n in range(10): os.posix_fallocate(os.open(f'f{n}', os.O_CREAT | os.O_WRONLY), 0, 1 << 30)
except OSError: pass
import time; time.sleep(20)"""
EVERY_100_MS = FALLOCATE.replace("0, 1 << 30)", "0, 100 << 20), time.sleep(0.1)").replace("import os", "import os, time").replace("range(10)", "range(13)")
SMALL = "import os\nos.mkdir('d')\ntry:\n    for n in range(100000): open(f'd/{n}', 'w').close()\nexcept OSError: pass\nimport time; time.sleep(20)"
PROGRAMS = (
    ("posix_fallocate of 10 GiB", "python", FALLOCATE),
    ("posix_fallocate of 100 MB every 100 ms", "python", EVERY_100_MS),
    ("posix_fallocate of 10 GiB, at once over", "python", FALLOCATE.replace("time.sleep(20)", "time.sleep(0)")),
    ("dd", "bash", "dd if=/dev/zero of=f bs=1M count=1000 2>/dev/null; sleep 20"),
    ("100,000 small files", "python", SMALL),
)


def taken(root):
    room = os.statvfs(root)
    return (room.f_blocks - room.f_bavail) * room.f_frsize, room.f_files - room.f_favail


def watch(root, stop, out):
    """The most above the bounds, and the seconds above them."""
    bytes_then, files_then = taken(root)
    last = time.monotonic()
    while not stop.is_set():
        now_bytes, now_files = taken(root)
        now = time.monotonic()
        above = (max(now_bytes - bytes_then - QUOTA, 0), max(now_files - files_then - FILES, 0))
        out["bytes"] = max(out["bytes"], above[0])
        out["files"] = max(out["files"], above[1])
        out["seconds"] += now - last if any(above) else 0
        last = now
        time.sleep(0.002)


def main():
    try:
        site = sites.on_small_disk(1400, 90000, {"SANDBOX_QUOTA": str(QUOTA), "SANDBOX_FILES": str(FILES), "SANDBOX_DISK_RESERVE": "64m"})
        print(f"1400 MiB of ext4, SANDBOX_QUOTA={QUOTA >> 20}m, SANDBOX_FILES={FILES}:")
        for name, language, code in PROGRAMS:
            client = sites.new_conversation(site.client())
            client.run("true", "bash")
            out, stop = {"bytes": 0, "files": 0, "seconds": 0.0}, threading.Event()
            watcher = threading.Thread(target=watch, args=(site.root, stop, out))
            watcher.start()
            result = client.run(code, language, timeout=60)
            stop.set()
            watcher.join()
            print(f"  {name:40} {result['status']:10} after {result['durationMs']:5} ms; above: {out['bytes'] / MIB:7.1f} MiB, "
                  f"{out['files']:6} files, for {out['seconds'] * 1000:5.0f} ms")
    finally:
        harness.end_test()
        harness.close()


if __name__ == "__main__":
    main()
