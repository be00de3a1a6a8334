"""An S3 server (s3rver, from npm), which checks signatures, for the tests of SANDBOX_STORE."""
import functools
import socket
import subprocess

import procs
from harness import TOP, Skip, at_test_end, new_folder, wait_until
from sites import free_port

KEY = "S3RVER:S3RVER"  # the only key that it knows
BUCKET = "sandcgi-tests"


@functools.cache
def _program():
    script = '. "$1/tests/lib/node.sh"; node_find || exit 1; place=$(node_install "$1/tests/store") || exit 1; printf "%s\\n%s\\n" "$NODE" "$place"'
    done = subprocess.run(["bash", "-c", script, "-", TOP], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip(f"no S3 server: {done.stderr.strip()[-300:]}")
    node, place = done.stdout.split("\n")[-3:-1]
    return [node, f"{place}/node_modules/s3rver/bin/s3rver.js"]


def _answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


class S3:
    def __init__(self):
        self.folder, self.port = new_folder("s3"), free_port()
        self.process = None
        at_test_end(self.stop)

    def start(self):
        command = [*_program(), "-d", self.folder, "-a", "127.0.0.1", "-p", str(self.port), "--configure-bucket", BUCKET]
        with open(f"{self.folder}.log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: _answers(self.port), 20, "the S3 server answers")
        return self

    def stop(self):
        if self.process:
            procs.end(self.process, 10)
        self.process = None

    def settings(self, key=KEY, prefix="nodes/a", port=None):
        path = f"{new_folder('key')}/credentials"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{key}\n")
        return {"SANDBOX_STORE": f"s3://{BUCKET}/{prefix}", "SANDBOX_STORE_ENDPOINT": f"http://127.0.0.1:{port or self.port}",
                "SANDBOX_STORE_CREDENTIALS": path}
