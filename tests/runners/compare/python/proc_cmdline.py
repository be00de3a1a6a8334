# args: --one two
# optional: --one two 
with open("/proc/self/cmdline") as f:
    print(f.read().replace("\0", " "), end="|\n")
