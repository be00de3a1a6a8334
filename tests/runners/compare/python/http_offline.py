import socket
import urllib.error
import urllib.request

try:
    urllib.request.urlopen("http://192.0.2.1/", timeout=3)
except urllib.error.URLError as e:
    print(e)
try:
    socket.gethostbyname("example.org")
except OSError as e:
    print(e)
print(socket.gethostname())
