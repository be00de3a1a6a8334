import sys

sys.stdout = None
print("nowhere")
sys.__stdout__.write("somewhere\n")
