# file: matplotlib/notes.txt
#| a folder that is no package
# ways: all
# either: full
import matplotlib

print(matplotlib.__file__)
