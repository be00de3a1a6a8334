# file: helper.py
#| import __main__
#| import script
#| print("helper sees", __main__.value, script.value, __main__ is script)
print("runs as", __name__)
value = [1]
if __name__ == "__main__":
    import helper
