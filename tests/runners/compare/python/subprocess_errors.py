# differs: [\d.]+ seconds
import subprocess

for call in (lambda: subprocess.run(["no-such-program"]), lambda: subprocess.run(["/data"]),
             lambda: subprocess.run(["false"], check=True), lambda: subprocess.run(["sleep", "5"], timeout=0.1)):
    try:
        call()
    except (OSError, subprocess.SubprocessError) as e:
        print(type(e).__name__, e)
