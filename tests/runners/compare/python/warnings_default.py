# ways: cold started
import warnings

print([(f[0], str(f[1]), f[2].__name__, f[3], f[4]) for f in warnings.filters])
warnings.warn("plain")
warnings.warn("deprecated", DeprecationWarning)
warnings.warn("resource", ResourceWarning)
for _ in range(3):
    warnings.warn("three times at one place")
print(sorted(k for k in globals() if "warning" in k.lower()))
