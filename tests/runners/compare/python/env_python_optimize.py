# env: PYTHONOPTIMIZE=1
# anew: light full
assert False, "not reached"
print(__debug__)
