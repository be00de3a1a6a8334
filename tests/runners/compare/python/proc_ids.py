# ways: started preloading
import os

print(os.getppid(), os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid(), os.getuid(), os.getgid(), os.getgroups())
print(os.getcwd(), os.readlink("/proc/self/cwd"), os.readlink("/proc/self/exe"), os.nice(0))
print(os.sched_getscheduler(0), len(os.sched_getaffinity(0)) == os.cpu_count())
