# ways: cold started preloaded
# unlisted: book\.xlsx
import pandas as pd

pd.DataFrame({"a": [1, 2], "b": ["x", "ü"]}).to_excel("book.xlsx", index=False)
print(pd.read_excel("book.xlsx"))
