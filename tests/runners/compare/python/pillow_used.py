# ways: cold started preloaded
from PIL import Image, ImageDraw

image = Image.new("RGB", (40, 30), "white")
ImageDraw.Draw(image).text((2, 2), "hi", fill="black")
image.save("image.png")
image.save("image.jpg")
print(image.size, Image.open("image.png").getpixel((0, 0)))
