# env: PYTHONHASHSEED=0
# new: started preloaded
print(hash("text"), hash(b"bytes"), list({"a", "b", "c", "d"}))
