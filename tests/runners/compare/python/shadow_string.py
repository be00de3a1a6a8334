# file: string.py
#| ascii_letters = "mine"
# ways: started preloading
import string

print(string.ascii_letters)
import logging
