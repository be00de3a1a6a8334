try:
    input("prompt: ")
except EOFError as e:
    print(repr(e))
input()
