# file: data.csv
#| a,b
# file: notes.py
#| x = 1
# file: my_numpy.py
#| x = 1
# file: sub/random.py
#| x = 1
# ways: started preloading
import notes

print(notes.x)
