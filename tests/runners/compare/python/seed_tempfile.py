# fresh: ^name (\S+)
# ways: started preloaded
import os
import tempfile

print("name", tempfile.mktemp())
with tempfile.NamedTemporaryFile() as f, tempfile.TemporaryDirectory() as d:
    print(os.path.dirname(f.name), os.path.dirname(d), tempfile.gettempdir(), tempfile.gettempprefix())
print(sorted(os.listdir("/tmp")))
