import site
import sys

print(site.ENABLE_USER_SITE, site.USER_BASE, site.USER_SITE, site.PREFIXES)
print("sitecustomize" in sys.modules, "usercustomize" in sys.modules, sys.modules["sitecustomize"].__file__)
print(sorted(n for n in vars(sys.modules["sitecustomize"]) if not n.startswith("__")))
