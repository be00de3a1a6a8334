# env: PYTHONOPTIMIZE=1
# new: started preloaded
assert False, "not reached"
print(__debug__)
