# file: sales.csv
#| day,region,amount
#| 2024-01-01,north,10.5
#| 2024-01-02,south,20
#| 2024-01-03,north,
#| 2024-01-04,south,40.25
# ways: all
import pandas as pd

frame = pd.read_csv("sales.csv", parse_dates=["day"])
print(frame.describe(include="all", datetime_is_numeric=True))
print(frame.dtypes, frame.groupby("region").amount.agg(["sum", "mean"]))
frame.set_index("day").resample("2D").sum(numeric_only=True).to_csv("out.csv")
print(frame.info())
