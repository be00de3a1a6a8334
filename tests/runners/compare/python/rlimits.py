# ways: started preloading
import resource

for name in sorted(n for n in dir(resource) if n.startswith("RLIMIT_")):
    if name not in ("RLIMIT_OFILE", "RLIMIT_SIGPENDING", "RLIMIT_NPROC"):
        print(name, resource.getrlimit(getattr(resource, name)))
