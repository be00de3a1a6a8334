# file: matplotlib/notes.txt
#| a folder that is no package
# either: preloaded
import matplotlib

print(matplotlib.__file__)
