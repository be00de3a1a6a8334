# ways: started preloaded
import linecache

print(sorted(linecache.cache), repr(linecache.getline(__file__, 1)), repr(linecache.getline("/nowhere", 1)))
