# ways: started preloading
import subprocess

subprocess.Popen(["sh", "-c", "sleep 0.05; echo late; sleep 100"])
print("main ends", flush=True)
raise SystemExit(3)
