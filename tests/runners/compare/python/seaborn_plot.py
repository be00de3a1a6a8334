# ways: cold started preloaded
import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns

sns.set_theme()
sns.barplot(data=pd.DataFrame({"x": ["a", "b"], "y": [1, 2]}), x="x", y="y")
plt.savefig("chart.png")
