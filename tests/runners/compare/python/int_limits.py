try:
    int("9" * 5000)
except ValueError as e:
    print(e)
print(2 ** 100, 10 ** 30 // 7, -7 // 2, 7.0 % -2)
str(10 ** 5000)
