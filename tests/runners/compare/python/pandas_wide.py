# ways: started preloaded
import pandas as pd

frame = pd.DataFrame({f"column {n}": range(100) for n in range(30)})
print(frame)
print(frame.iloc[:3, :2].to_string(), frame.iloc[:2, :2].to_markdown() if False else "")
