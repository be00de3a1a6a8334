# file: matplotlib/notes.txt
#| a folder that is no package
# either: full
import matplotlib

print(matplotlib.__file__)
