# ways: started preloaded
import matplotlib.font_manager as fm
import matplotlib.pyplot as plt

print(fm.findfont("DejaVu Sans"), len(fm.fontManager.ttflist))
plt.title("日本", fontfamily="No Such Font")
plt.savefig("chart.png")
