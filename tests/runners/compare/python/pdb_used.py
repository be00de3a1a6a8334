# stdin: p x\nn\nc\n
x = 5
breakpoint()
x = 6
print(x)
