# ways: started preloaded
import copy
import pickle


class Point:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x


data = pickle.dumps(Point(5))
print(data, pickle.loads(data) == Point(5), copy.deepcopy(Point([1])).x, Point.__module__, Point.__qualname__)
open("point.pickle", "wb").write(data)
