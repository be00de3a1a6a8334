# ways: started preloaded
import signal

for s in sorted(signal.valid_signals()):
    print(int(s), signal.getsignal(s))
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.sigpending(), signal.getitimer(signal.ITIMER_REAL))
with open("/proc/self/status") as f:
    print([line.split() for line in f if line.startswith(("Sig", "Shd")) and not line.startswith("SigQ")])
