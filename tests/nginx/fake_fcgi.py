"""A tiny FastCGI responder for the tests of the nginx part: one thread per connection, one request per connection.

What it does is told by the request's body (JSON):
  {"do": "params"}                  answers the parameters and the length of the body (also when the body is not JSON)
  {"do": "stream", "count": 4, "gap": 0.3}  answers an event stream, one event per gap
  {"do": "hang"}                    waits until the connection is closed and notes when (self.closed)
  {"do": "wait"}                    answers when the test has set self.go
  {"do": "status", "status": "405 Method Not Allowed", "body": "..."}
  {"do": "redirect", "to": "/x"}    answers X-Accel-Redirect
  {"do": "drop"}                    closes without an answer
"""
import json
import os
import socket
import struct
import threading
import time

BEGIN, END, PARAMS, STDIN, STDOUT = 1, 3, 4, 5, 6


def read_exact(conn, size):
    data = b""
    while len(data) < size:
        part = conn.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def read_record(conn):
    _, kind, _, length, padding = struct.unpack("!BBHHBx", read_exact(conn, 8))
    content = read_exact(conn, length)
    read_exact(conn, padding)
    return kind, content


def read_pairs(data):
    pairs, at = [], 0

    def length():
        nonlocal at
        if data[at] < 128:
            at += 1
            return data[at - 1]
        at += 4
        return struct.unpack("!I", data[at - 4:at])[0] & 0x7FFFFFFF

    while at < len(data):
        name_len, value_len = length(), length()
        name = data[at:at + name_len].decode("latin-1")
        value = data[at + name_len:at + name_len + value_len].decode("latin-1")
        pairs.append((name, value))
        at += name_len + value_len
    return pairs


class Responder:
    def __init__(self, path, group=None):
        self.path = path
        self.requests = []  # one {"params": pairs, "length": bytes of the body, "flags": of BEGIN} per request
        self.go = threading.Event()
        self.closed = []    # when the connections of "hang" were closed
        self.bodiless = {}  # what is done for a request without a body that is JSON
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        os.chmod(path, 0o660)
        if group is not None:
            os.chown(path, -1, group)
        self.listener.listen(128)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def close(self):
        # shutdown, so that the thread in accept() wakes up
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)

    def await_requests(self, count):
        """Until so many have come since the start."""
        end = time.monotonic() + 20
        while len(self.requests) < count and time.monotonic() < end:
            time.sleep(0.02)

    def serve(self, conn):
        with conn:
            try:
                self.answer(conn)
            except (EOFError, OSError):
                pass

    def receive(self, conn):
        params, body, flags = b"", b"", None
        while True:
            kind, content = read_record(conn)
            if kind == BEGIN:
                flags = content[2]
            elif kind == PARAMS:
                params += content
            elif kind == STDIN:
                if not content:
                    return read_pairs(params), body, flags
                body += content

    def answer(self, conn):
        pairs, body, flags = self.receive(conn)
        self.requests.append({"params": pairs, "length": len(body), "flags": flags})
        try:
            order = json.loads(body)
        except ValueError:
            order = self.bodiless
        getattr(self, "do_" + order.get("do", "params"))(conn, order)

    @staticmethod
    def out(conn, data):
        for at in range(0, len(data), 65528):
            part = data[at:at + 65528]
            conn.sendall(struct.pack("!BBHHBx", 1, STDOUT, 1, len(part), 0) + part)

    def end(self, conn):
        conn.sendall(struct.pack("!BBHHBx", 1, STDOUT, 1, 0, 0) + struct.pack("!BBHHBx", 1, END, 1, 8, 0) + bytes(8))

    def reply(self, conn, body, status="200 OK", kind="application/json", extra=""):
        self.out(conn, f"Status: {status}\r\nContent-Type: {kind}\r\n{extra}\r\n".encode() + body.encode())
        self.end(conn)

    def do_params(self, conn, _order):
        self.reply(conn, json.dumps(self.requests[-1]))

    def do_status(self, conn, order):
        self.reply(conn, order["body"], order["status"])

    def do_wait(self, conn, _order):
        self.go.wait(60)
        self.reply(conn, "{}")

    def do_redirect(self, conn, order):
        self.reply(conn, "{}", extra=f"X-Accel-Redirect: {order['to']}\r\n")

    def do_drop(self, conn, _order):
        conn.close()

    def do_stream(self, conn, order):
        self.out(conn, b"Content-Type: text/event-stream\r\nX-Accel-Buffering: no\r\n\r\n")
        for number in range(order["count"]):
            self.out(conn, f"data: {number}\n\n".encode())
            time.sleep(order["gap"])
        self.end(conn)

    def do_hang(self, conn, _order):
        conn.settimeout(20)
        try:
            while conn.recv(4096):
                pass
        except OSError:
            pass
        self.closed.append(time.monotonic())
