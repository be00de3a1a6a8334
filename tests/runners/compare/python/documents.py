# unlisted: .*\.(pdf|xlsx)
import bs4
import lxml.etree
import openpyxl
import reportlab.pdfgen.canvas

print(bs4.BeautifulSoup("<p>a<b>c</b>", "lxml").b.text, lxml.etree.tostring(lxml.etree.fromstring("<a><b/></a>")))
book = openpyxl.Workbook()
book.active.append([1, "two"])
book.save("book.xlsx")
canvas = reportlab.pdfgen.canvas.Canvas("page.pdf")
canvas.drawString(100, 100, "hello")
canvas.save()
print(openpyxl.load_workbook("book.xlsx").active["B1"].value)
