print("not even this")
x = [1, 2
y = 3
