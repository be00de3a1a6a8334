# file: string.py
#| ascii_letters = "mine"
# ways: all
import string

print(string.ascii_letters)
import logging
