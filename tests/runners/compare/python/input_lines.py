# stdin: Ada\n36\nlast without newline
# ways: all
name = input("name? ")
age = int(input())
print(f"{name} is {age}", repr(input("> ")))
print(input("no more: "))
