import re

print(re.findall(r"(\w+)=(\d+)", "a=1 b=22"), re.sub(r"\s+", " ", "a \t\n b"), re.purge())
print(re.compile("(").pattern)
