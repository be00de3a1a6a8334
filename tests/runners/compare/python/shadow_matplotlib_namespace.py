# file: matplotlib/notes.txt
#| a folder that is no package
# ways: all
import matplotlib

print(matplotlib.__file__)
