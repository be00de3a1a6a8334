# ways: all
import sys

print("out")
sys.exit("an error message")
