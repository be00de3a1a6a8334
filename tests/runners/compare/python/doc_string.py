"""The program's doc."""
print(__doc__, __name__)
