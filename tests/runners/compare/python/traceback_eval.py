print(eval("1 + 1"))
eval("1 +* 2")
