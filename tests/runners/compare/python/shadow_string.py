# file: string.py
#| ascii_letters = "mine"
# ways: all
# anew: full
import string

print(string.ascii_letters)
import logging
