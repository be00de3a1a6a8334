import subprocess

subprocess.Popen(["sh", "-c", "sleep 100"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
print("left a daemon")
