# file: string.py
#| ascii_letters = "mine"
# ways: light mid
# anew: full
import string

print(string.ascii_letters)
import logging
