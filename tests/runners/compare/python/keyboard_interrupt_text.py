try:
    raise KeyboardInterrupt("by hand")
finally:
    print("finally")
