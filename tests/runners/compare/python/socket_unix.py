# unlisted: s\.sock
import os
import socket

server = socket.socket(socket.AF_UNIX)
server.bind("s.sock")
server.listen()
print(server.fileno())
if os.fork() == 0:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("s.sock")
        client.sendall(b"hello")
    os._exit(0)
connection, _ = server.accept()
print(connection.recv(100))
