# ways: started preloading
try:
    try:
        {}["key"]
    except KeyError as e:
        raise RuntimeError("while looking") from e
except RuntimeError:
    open("/nowhere/file")
