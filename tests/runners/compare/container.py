"""One container, in the shape that runs have, and the stream to its PID 1. By the engine's REST API, for speed."""
import os
import pathlib
import socket
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
for folder in (HERE.parent, HERE.parents[1] / "e2e", HERE.parents[1] / "lib"):
    sys.path.insert(0, str(folder))
import engine  # noqa: E402
import sbx  # noqa: E402

PATIENCE_S = 120
MEMORY = 256 << 20
USER = (1879048192, 1879048192)  # in no file of an image, as the users of conversations
LABEL = "sandcgi.compare"


IMAGE = "sandcgi-runner-workbench:latest"
ENTRY = ["/usr/local/bin/entry", "-L", "/usr/local/lib/sandbox/languages", "-F"]  # and the language whose interpreter waits


def labels(language):
    """The image's labels for the language; None when there is no such image."""
    found = engine.image(IMAGE)
    all_of_it = (found["Config"].get("Labels") or {}) if "Id" in (found or {}) else {}
    languages = all_of_it.get("sandbox.language", "").split()
    if language not in languages:
        return None
    return {name: value for name, value in all_of_it.items() if name != "sandbox.preload" or language == languages[0]}


def describe(language, data, entrypoint, binds):
    """As common/engine/docker_container.c does, but without a limit on CPU time, so that all takes less of it."""
    host = {"Binds": [f"{data}:/data:rw", *binds], "ReadonlyRootfs": True, "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"], "IpcMode": "private", "ShmSize": 16 << 20,
            "Tmpfs": {"/tmp": "rw,exec,nosuid,nodev,mode=1777,size=64m"}, "LogConfig": {"Type": "none"},
            "Memory": MEMORY, "MemorySwap": MEMORY, "PidsLimit": 128, "NetworkMode": "none",
            "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}, {"Name": "nofile", "Soft": 1024, "Hard": 1024}]}
    body = {"Image": IMAGE, "Entrypoint": entrypoint or [*ENTRY, language], "Hostname": "sandbox", "User": "%d:%d" % USER, "WorkingDir": "/data", "OpenStdin": True,
            "StdinOnce": True, "AttachStdin": True, "AttachStdout": True, "AttachStderr": True, "NetworkDisabled": True,
            "Labels": {LABEL: str(os.getpid())}, "HostConfig": host}
    return body


def attach(container):
    """The engine's stream of bytes in both directions."""
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stream.settimeout(PATIENCE_S)
    stream.connect(engine.socket_path())
    stream.sendall(f"POST /containers/{container}/attach?stream=1&stdin=1&stdout=1&stderr=1 HTTP/1.1\r\nHost: engine\r\n"
                   "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = stream.recv(1)
        if not byte:
            break
        head += byte
    if not head.startswith(b"HTTP/1.1 101"):
        raise engine.Failed(f"engine: attach: {head[:200]!r}")
    return stream


class Output:
    """The container's standard output out of the engine's stream; what it said on standard error is kept aside."""

    def __init__(self, stream):
        self.file = stream.makefile("rb", buffering=1 << 16)
        self.out = bytearray()
        self.said = bytearray()

    def read(self, n):
        while len(self.out) < n:
            head = sbx.read_exactly(self.file, 8)
            if len(head) < 8:
                break
            kind, size = struct.unpack(">B3xI", head)
            part = sbx.read_exactly(self.file, size)
            if kind == 1:
                self.out += part
            else:
                self.said += part
        data = bytes(self.out[:n])
        del self.out[:n]
        return data


class Container:
    """A container that runs from here to close()."""

    def __init__(self, language, data, entrypoint=None, binds=()):
        made = engine.api("POST", "/containers/create", describe(language, data, entrypoint, binds))
        self.id = made["Id"]
        self.stream = attach(self.id)
        self.output = Output(self.stream)
        engine.api("POST", f"/containers/{self.id}/start")

    def send(self, *parts):
        self.stream.sendall(b"".join(parts))

    def frames(self):
        return sbx.frames(self.output)

    def last_words(self):
        """What the entry program said for itself, and how the container is: for reports of trouble."""
        state = (engine.inspect(self.id) or {}).get("State", {})
        said = bytes(self.output.said).decode(errors="replace").strip()
        return f"{said or 'nothing was said'}; the container: {state.get('Status')}, exit status {state.get('ExitCode')}"

    def close(self):
        self.output.file.close()
        self.stream.close()
        engine.remove(self.id)


def remove_all():
    """What an interrupted comparison of this process has left."""
    for one in engine.containers(**{LABEL.replace(".", "_"): str(os.getpid())}):
        engine.remove(one["Id"])
