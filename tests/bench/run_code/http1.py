"""As little HTTP/1.1 as measuring needs: one connection, requests as bytes, one reply at a time."""
import json
import socket
import ssl
import urllib.parse


class Connection:
    """To "http(s)://host:port" or to a Unix socket's path; kept alive until close()."""

    def __init__(self, address, ca=None, timeout=120):
        self._input = bytearray()
        if address.startswith("/"):
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(timeout)
            self.sock.connect(address)
            return
        url = urllib.parse.urlsplit(address)
        self.sock = socket.create_connection((url.hostname, url.port or (443 if url.scheme == "https" else 80)), timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if url.scheme == "https":
            self.sock = ssl.create_default_context(cafile=ca).wrap_socket(self.sock, server_hostname=url.hostname)

    def close(self):
        self.sock.close()

    def receive(self):
        """What has come, at least one byte; fails at the end of the stream."""
        data = self.sock.recv(1 << 16)
        if not data:
            raise ConnectionError("the connection has ended")
        return data

    def _head(self):
        while (end := self._input.find(b"\r\n\r\n")) < 0:
            self._input += self.receive()
        lines = bytes(self._input[:end]).decode("latin-1").split("\r\n")
        del self._input[:end + 4]
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(lines[0].split()[1]), headers

    def _take(self, length):
        while len(self._input) < length:
            self._input += self.receive()
        data = bytes(self._input[:length])
        del self._input[:length]
        return data

    def chunks(self, headers):
        """The body's pieces as they come."""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while True:
                while (end := self._input.find(b"\r\n")) < 0:
                    self._input += self.receive()
                size = int(bytes(self._input[:end]).split(b";")[0], 16)
                del self._input[:end + 2]
                data = self._take(size + 2)[:size]
                if not size:
                    return
                yield data
        else:
            yield self._take(int(headers.get("content-length", 0)))

    def begin(self, request):
        """Sends a request; (status, headers) as soon as they are there. The body is then read with chunks()."""
        self.sock.sendall(request)
        return self._head()

    def call(self, request):
        """(status, headers, body)."""
        status, headers = self.begin(request)
        if status < 200 or status in (204, 304):
            return status, headers, b""
        return status, headers, b"".join(self.chunks(headers))

    def taken_over(self):
        """After a 101: what came behind the head."""
        data = bytes(self._input)
        self._input.clear()
        return data


def request(method, path, headers=(), body=None):
    """headers: pairs; body: a JSON value, or None."""
    data = b"" if body is None else json.dumps(body).encode()
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers)]
    if body is not None:
        head += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + data
