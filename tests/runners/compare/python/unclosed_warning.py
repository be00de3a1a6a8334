import warnings

warnings.simplefilter("always")
open("text.txt", "w").write("dropped")
print("end")
