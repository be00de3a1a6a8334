"""A bare FastCGI client: what reaches a worker without our nginx."""
import socket
import struct

BEGIN, END, PARAMS, STDIN, STDOUT, STDERR = 1, 3, 4, 5, 6, 7


def _record(kind, content):
    return struct.pack("!BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def _length(n):
    return struct.pack("!B", n) if n < 128 else struct.pack("!I", n | 0x80000000)


def _params(params):
    out = b""
    for name, value in params.items():
        name, value = name.encode(), value.encode()
        out += _length(len(name)) + _length(len(value)) + name + value
    return out


def connect(address, timeout=30):
    """address: a socket's path, or (host, port)."""
    sock = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET, socket.SOCK_STREAM)
    sock.settimeout(timeout)
    sock.connect(address)
    return sock


def _read_exactly(sock, n):
    data = b""
    while len(data) < n:
        part = sock.recv(n - len(data))
        if not part:
            raise ConnectionError("the worker closed the connection")
        data += part
    return data


def begin_request(sock, params, length):
    """All but the body, which has this length."""
    params = {"REQUEST_METHOD": "POST", "CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(length),
              "REQUEST_URI": "/mcp/api", "SANDCGI_ANSWERS": "structured", "SERVER_PROTOCOL": "HTTP/1.1"} | params
    sock.sendall(_record(BEGIN, struct.pack("!HB5x", 1, 0)) + _record(PARAMS, _params(params)) + _record(PARAMS, b""))


def send_body(sock, body):
    pieces = [_record(STDIN, body[start:start + 65000]) for start in range(0, len(body), 65000)]
    sock.sendall(b"".join(pieces) + _record(STDIN, b""))


def send_request(sock, params, body=b""):
    begin_request(sock, params, len(body))
    send_body(sock, body)


def read_until(sock, part):
    """Reads records until their content holds part."""
    data = b""
    while part not in data:
        _version, _kind, _id, length, padding, _ = struct.unpack("!BBHHBB", _read_exactly(sock, 8))
        data += _read_exactly(sock, length)
        _read_exactly(sock, padding)
    return data


def read_answer(sock):
    """(status, headers, body)."""
    stdout = b""
    while True:
        _version, kind, _id, length, padding, _ = struct.unpack("!BBHHBB", _read_exactly(sock, 8))
        content = _read_exactly(sock, length)
        _read_exactly(sock, padding)
        if kind == STDOUT:
            stdout += content
        elif kind == END:
            return parse_cgi(stdout)


def request(address, params, body=b"", timeout=30):
    """(status, headers, body) of one request."""
    with connect(address, timeout) as sock:
        send_request(sock, params, body)
        return read_answer(sock)


def parse_cgi(output):
    head, _, body = output.partition(b"\r\n\r\n")
    headers = {}
    for line in head.decode("latin-1").split("\r\n"):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(headers.get("status", "200").split()[0]), headers, body
