# ways: all
from PIL import Image

Image.new("CMYK", (40, 30)).show()
Image.new("F", (40, 30)).show("title")
