# file: other.py
#| import sys
#|
#| print("other", sys.argv, __name__, __file__, sys.path[:2])
#| raise ValueError("other's error")
import subprocess
import sys

done = subprocess.run([sys.executable, "other.py", "x"], capture_output=True, text=True)
print(done.returncode, done.stdout, done.stderr)
done = subprocess.run([sys.executable, "-m", "other", "y"], capture_output=True, text=True)
print(done.returncode, done.stdout, done.stderr)
