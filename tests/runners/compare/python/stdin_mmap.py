# stdin: mapped text
import mmap

with mmap.mmap(0, 0, access=mmap.ACCESS_READ) as m:
    print(m[:], len(m))
