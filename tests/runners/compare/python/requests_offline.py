# differs: 0x[0-9a-f]+
import requests

try:
    requests.get("http://192.0.2.1/", timeout=3)
except requests.ConnectionError as e:
    print(e)
