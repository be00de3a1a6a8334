# stdin: secret\n
import getpass
import os

print(getpass.getuser(), os.path.expanduser("~"))
print(getpass.getpass("Password: "))
