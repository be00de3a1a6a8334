# ways: started preloaded
import pandas as pd

axis = pd.DataFrame({"a": [1, 3, 2]}).plot(title="a plot")
axis.figure.savefig("plot.png")
print(type(axis).__name__)
