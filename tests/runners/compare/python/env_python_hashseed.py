# env: PYTHONHASHSEED=0
# anew: light full
print(hash("text"), hash(b"bytes"), list({"a", "b", "c", "d"}))
