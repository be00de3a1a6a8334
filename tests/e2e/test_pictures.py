"""Pictures without savefig: what a program leaves open or shows comes back, whatever becomes of the program."""
import base64
import hashlib

import pool
import sites
import warm
from harness import check, contains, equal, test

THREE = "import matplotlib.pyplot as plt\nfor n in range(3):\n    plt.figure(); plt.plot([1, n, 2])\n"


def _images(whole):
    return [base64.b64decode(one["data"]) for one in whole["content"] if one["type"] == "image"]


def _names(whole):
    return [file["name"] for file in whole["structuredContent"]["files"]]


def _numbered(count):
    return [f"figure-{n}.png" for n in range(1, count + 1)]


@test("three figures and an exception afterwards: three pictures and the error", core=True)
def _():
    whole = sites.client().run_whole(THREE + "raise ValueError('boom')")
    result = whole["structuredContent"]
    equal((result["status"], result["exitCode"]), ("error", 1))
    contains(result["stderr"], "ValueError: boom")
    equal(_names(whole), _numbered(3))
    equal(len(_images(whole)), 3)
    check(all(image.startswith(b"\x89PNG") for image in _images(whole)), "PNG")


@test("figures left open by sys.exit and at the program's end are saved, too, and the exit code stays")
def _():
    client = sites.client()
    whole = client.run_whole(THREE + "import sys; sys.exit(7)")
    equal((whole["structuredContent"]["exitCode"], len(_images(whole))), (7, 3))
    whole = client.run_whole(THREE)
    equal((whole["structuredContent"]["exitCode"], _names(whole)), (0, ["figure-4.png", "figure-5.png", "figure-6.png"]))


@test("plt.show() shows: each figure once, and drawing goes on in a new one")
def _():
    client = sites.client()
    whole = client.run_whole("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\nplt.bar([1, 2], [3, 1])\nplt.show()\n"
                             "plt.savefig('late.png', bbox_inches='tight')")
    equal(_names(whole), ["figure-1.png", "figure-2.png", "late.png"])
    first, second = _images(whole)  # the same picture is shown once
    late = client.download(whole["structuredContent"]["files"][2]["url"]).body
    check(first != second and second == late, "the figure that was shown last is the one that is saved afterwards")
    equal(whole["structuredContent"]["stderr"], "")


@test("what the program has saved itself is not saved again, unless something came after it")
def _():
    client = sites.client()
    equal(_names(client.run_whole("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig('a.png')\nplt.show()")), ["a.png"])
    equal(_names(client.run_whole("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig('b.pdf')")), ["b.pdf"])
    equal(_names(client.run_whole("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig('c.png')\nplt.plot([2])")),
          ["c.png", "figure-1.png"])
    equal(_names(client.run_whole("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig('/tmp/d.png')\n")), ["figure-2.png"])
    equal(_names(client.run_whole("import matplotlib.pyplot as plt\nplt.plot([1])\nplt.close()\nplt.figure()")), [])


@test("pandas, seaborn and PIL's Image.show() need no file name either")
def _():
    client = sites.client()
    equal(len(_images(client.run_whole("import pandas\npandas.Series([1, 3, 2]).plot()"))), 1)
    equal(len(_images(client.run_whole("import seaborn\nseaborn.histplot(x=[1, 2, 2, 3])", timeout=60, waitMs=300000))), 1)
    whole = client.run_whole("from PIL import Image\nImage.new('RGB', (40, 30), 'red').show()\nImage.new('CMYK', (9, 9)).show()")
    equal(len(_images(whole)), 2)


@test("a picture never takes the place of a file that is there")
def _():
    client = sites.client()
    client.upload("figure-1.png", b"mine")
    whole = client.run_whole("import os\nos.symlink('/tmp/x', 'figure-2.png')\n" + THREE)
    equal(_names(whole), ["figure-3.png", "figure-4.png", "figure-5.png"])
    equal(client.run("print(open('figure-1.png').read())")["stdout"], "mine\n")


@test("SANDBOX_FIGURES=0 in the program's environment turns it off")
def _():
    whole = sites.client().run_whole(THREE + "plt.show(); print(plt.get_fignums())", environment={"SANDBOX_FIGURES": "0"})
    equal((_names(whole), whole["structuredContent"]["stdout"]), ([], "[1, 2, 3]\n"))


@test("number and size of the pictures are bounded, and the program is told")
def _():
    client = sites.client()
    whole = client.run_whole("import matplotlib.pyplot as plt\nplt.rcParams['figure.max_open_warning'] = 0\n"
                             "for n in range(23): plt.figure(figsize=(1, 1)); plt.plot([n])", timeout=120, waitMs=300000)
    equal(len(_names(whole)), 20)
    contains(whole["structuredContent"]["stderr"], "3 more figures")
    whole = client.run_whole("import matplotlib.pyplot as plt\nplt.figure(figsize=(500, 500)); plt.plot([1])", timeout=60, waitMs=300000)
    equal(whole["structuredContent"]["status"], "ok")
    file = whole["structuredContent"]["files"][0]
    check(file["size"] <= 1 << 20, f"{file}")


@test("a figure that takes for ever to draw ends with the program's time, and os._exit saves nothing")
def _():
    client = sites.client()
    endless = "from matplotlib.artist import Artist\nclass A(Artist):\n    def draw(self, r):\n        while True: pass\n"
    whole = client.run_whole(f"{THREE}{endless}plt.gcf().add_artist(A())\nprint('end')", timeout=6)
    equal((whole["structuredContent"]["status"], whole["structuredContent"]["stdout"]), ("timeout", "end\n"))
    equal(_names(client.run_whole(THREE + "import os; os._exit(0)")), [])


@test("a forked child of the program does not save its parent's figures once more")
def _():
    whole = sites.client().run_whole(THREE + "import os\nif os.fork() == 0:\n    raise SystemExit\nos.wait()")
    equal(_names(whole), _numbered(3))


@test("a warm interpreter saves as well")
def _():
    site = warm.shared()
    pool.wait_for(site, language="python", sandbox="")
    whole = warm.new_client(site).run_whole(THREE + "raise ValueError('boom')")
    equal((_names(whole), len(_images(whole))), (_numbered(3), 3))


@test("the same picture by image content, link, resources/read and URL is the same to the byte")
def _():
    client = sites.client()
    whole = client.run_whole("import matplotlib.pyplot as plt\nplt.plot([3, 1, 2])")
    [image] = _images(whole)
    [link] = [one for one in whole["content"] if one["type"] == "resource_link"]
    digest = hashlib.sha256(image).hexdigest()
    equal(hashlib.sha256(client.download(link["uri"]).body).hexdigest(), digest, "link")
    equal(hashlib.sha256(client.download(whole["structuredContent"]["files"][0]["url"]).body).hexdigest(), digest, "URL")
    uri = f"sandbox://{client.conversation}/figure-1.png"
    read = client.result("resources/read", {"uri": uri})["contents"][0]
    equal(hashlib.sha256(base64.b64decode(read["blob"])).hexdigest(), digest, "resources/read")
    equal(client.run("import hashlib; print(hashlib.sha256(open('figure-1.png', 'rb').read()).hexdigest())")["stdout"].strip(), digest)


@test("a picture of few bytes and 2.5 thousand million pixels comes as a link, not inline")
def _():
    whole = sites.client().run_whole(
        "import struct, zlib\n"
        "def chunk(name, data): return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))\n"
        "for name, side in (('bomb.png', 50000), ('fine.png', 8)):\n"
        "    with open(name, 'wb') as f:\n"
        "        f.write(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', side, side, 1, 0, 0, 0, 0)))\n"
        "        f.write(chunk(b'IDAT', zlib.compress(bytes(2 * side))) + chunk(b'IEND', b''))\n")
    equal(_names(whole), ["bomb.png", "fine.png"])
    equal([image[16:24] for image in _images(whole)], [bytes([0, 0, 0, 8] * 2)])
    equal(sorted(one["name"] for one in whole["content"] if one["type"] == "resource_link"), ["bomb.png", "fine.png"])
