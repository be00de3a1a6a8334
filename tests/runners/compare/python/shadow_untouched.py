# file: contextvars.py
#| open("/tmp/trace", "w").write("contextvars was imported")
# file: ctypes/__init__.py
#| open("/tmp/trace", "w").write("ctypes was imported")
# file: dateutil.py
#| print("dateutil was imported")
# file: linecache.py
#| open("/tmp/trace", "w").write("linecache was imported")
# file: numpy.py
#| print("numpy was imported")
# file: PIL/__init__.py
#| open("/data/trace", "w").write("PIL was imported")
# file: struct.py
#| open("/tmp/trace", "w").write("struct was imported")
# file: six.py
#| open("/tmp/trace", "w").write("six was imported")
# ways: all
import os

print("nothing was imported", sorted(os.listdir("/data")), sorted(os.listdir("/tmp")))
