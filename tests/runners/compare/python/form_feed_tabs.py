if True:
	print("tab")

raise ValueError("after a form feed")
