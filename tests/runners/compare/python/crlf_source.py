# line ends of Windows
print("line one")
raise ValueError("line two")
