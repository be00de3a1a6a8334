# env: HOME=/data
# either: started preloaded
import os
import pathlib
import site
import sysconfig

print(os.path.expanduser("~"), pathlib.Path.home(), site.USER_SITE, sysconfig.get_path("purelib", "posix_user"))
