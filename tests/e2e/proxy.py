"""A relay in front of the engine's socket: another path, TCP, or TLS with client certificates; can go away and come back."""
import os
import socket
import ssl
import subprocess
import threading

import engine
from harness import at_test_end, new_folder


class Proxy:
    """address: a path, or None for a TCP port of 127.0.0.1 (self.port). context: TLS."""

    def __init__(self, address=None, context=None, change=bytes):
        self.address = address
        self.context = context
        self.change = change  # of what clients send
        self.port = None
        self.listener = None
        self.open = []
        at_test_end(self.stop)

    def start(self):
        if self.address:
            if os.path.exists(self.address):
                os.unlink(self.address)
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.address)
            os.chmod(self.address, 0o666)
        else:
            self.listener = socket.socket()
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listener.bind(("127.0.0.1", self.port or 0))
            self.port = self.listener.getsockname()[1]
        self.listener.listen(64)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()
        return self

    def stop(self):
        """Gone, with all its connections."""
        if self.listener:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            self.listener = None
            if self.address and os.path.exists(self.address):
                os.unlink(self.address)
        for sock in self.open:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.open.clear()

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            if self.context:
                client = self.context.wrap_socket(client, server_side=True)
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(engine.socket_path())
        except OSError:
            client.close()
            return
        self.open += [client, upstream]
        threading.Thread(target=self._relay, args=(client, upstream, self.change), daemon=True).start()
        self._relay(upstream, client)

    def _relay(self, source, target, change=bytes):
        try:
            while data := source.recv(65536):
                target.sendall(change(data))
        except OSError:
            pass
        try:
            if isinstance(target, ssl.SSLSocket):
                target.unwrap()  # its half of the close; shutdown() would cut both
            else:
                target.shutdown(socket.SHUT_WR)
        except (OSError, ValueError):
            pass


def make_certificates():
    """A folder as DOCKER_CERT_PATH wants it, with the server's pair beside: server.pem, server-key.pem."""
    folder = new_folder("engine-tls")

    def run(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    run("req", "-x509", *key, "-keyout", "ca-key.pem", "-out", "ca.pem", "-days", "2", "-subj", "/CN=e2e CA")
    for name, prefix, extension in (("server", "server", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
                                    ("client", "", "extendedKeyUsage=clientAuth")):
        cert, its_key = (f"{prefix}.pem", f"{prefix}-key.pem") if prefix else ("cert.pem", "key.pem")
        run("req", *key, "-keyout", its_key, "-out", f"{name}.csr", "-subj", f"/CN={name}")
        with open(f"{folder}/{name}.ext", "w", encoding="ascii") as file:
            file.write(extension + "\n")
        run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-days", "2",
            "-extfile", f"{name}.ext", "-out", cert)
    return folder


def tls_context(folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/server.pem", f"{folder}/server-key.pem")
    context.load_verify_locations(f"{folder}/ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    return context
