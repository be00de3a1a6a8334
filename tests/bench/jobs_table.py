"""Everyday jobs as assistants do them: the first call as it is usually written and, where that must fail, the next call that
the answer asks for. Wanted is what shows that the job is done (first_tries.py)."""
import base64
import io
import zipfile

from first_tries import bash, no, python, tool, typescript

DONE = "exit code 0"

SALES = "month,sales\nJan,10\nFeb,20\nMar,15\n"


def wrote(name, content):
    return tool("write_file", filename=name, content=content)


def _zip():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("in/a.txt", "first")
        archive.writestr("in/b.txt", "second")
    return base64.b64encode(packed.getvalue()).decode()


def upload(name, content):
    return tool("upload_file", filename=name, content=content)


# number in reference, job, what is there before, [call, and if need be the next], wanted…
JOBS = [
    (1, "a chart, as in a notebook", [], [python(
        "%matplotlib inline\nimport pandas as pd, numpy as np, matplotlib.pyplot as plt\n"
        "df = pd.DataFrame({'v': np.arange(90)}, index=pd.date_range('2024-01-01', periods=90)).resample('ME').sum()\n"
        "df.plot(title='Monthly 📈')\nplt.show()\ndf.describe()")], DONE, "[image]", "mean"),
    (2, "a file of an earlier conversation, which is not named", [wrote("sales.csv", SALES)], [
        python("import pandas as pd\nprint(pd.read_csv('/mnt/data/sales.csv').sales.sum())", conversationId={}),
        python("import pandas as pd\nprint(pd.read_csv('/mnt/data/sales.csv').sales.sum())")], DONE, "45"),
    (3, "the last expression of a groupby", [], [python(
        "import pandas as pd\ndf = pd.DataFrame({'k': list('aab'), 'v': [1, 2, 3]})\ndf.groupby('k').v.sum()")], DONE, "a    3"),
    (4, "!pip install and cross validation", [], [python(
        "!pip install scikit-learn -q\nfrom sklearn.datasets import load_iris\nfrom sklearn.linear_model import LogisticRegression\n"
        "from sklearn.model_selection import cross_val_score\nX, y = load_iris(return_X_y=True)\n"
        "cross_val_score(LogisticRegression(max_iter=500), X, y).mean()")], DONE, "0.97"),
    (5, "input()", [], [python("name = input('Name? ')\nprint('Hello', name)"), python("name = input('Name? ')\nprint('Hello', name)", stdin="Ada\n")], DONE, "Hello Ada"),
    (6, "a styled table by display()", [], [python("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\ndisplay(df.style.format('{:.1f}'))")], DONE, "1"),
    (7, "await at the top", [], [python("import asyncio\nasync def get(n):\n    await asyncio.sleep(0.01)\n    return n * n\nprint(await asyncio.gather(*map(get, range(4))))")],
     DONE, "[0, 1, 4, 9]"),
    (8, "a second call with df of the first", [python("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\nprint(len(df))")], [
        python("print(df.a.sum())"), python("import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})\nprint(df.a.sum())", session=True)], DONE, "3"),
    (9, "a chart to /mnt/data and its link", [], [python("import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.savefig('/mnt/data/chart.png')\nprint('[chart](sandbox:/mnt/data/chart.png)')")],
     DONE, "[image]", "chart.png", "/files/"),
    (10, "files to other places' homes", [], [python(
        "open('/home/user/a.csv', 'w').write('x')\nopen('/mnt/user-data/outputs/b.csv', 'w').write('y')\nprint('ok')")], DONE, "a.csv", "b.csv"),
    (11, "a CSV to /tmp", [], [
        python("import pandas as pd\npd.DataFrame({'a': [1]}).to_csv('/tmp/result.csv')\nprint('wrote /tmp/result.csv')"),
        python("import pandas as pd\npd.DataFrame({'a': [1]}).to_csv('/data/result.csv')\nprint('wrote')")], DONE, "/files/", "result.csv", no("gone")),
    (12, "results beside __file__ and on the desktop", [], [python(
        "import os, json\nhere = os.path.dirname(os.path.abspath(__file__))\nos.makedirs(os.path.join(here, 'output'), exist_ok=True)\n"
        "json.dump([1], open(os.path.join(here, 'output', 'r.json'), 'w'))\ndesk = os.path.expanduser('~/Desktop')\nos.makedirs(desk)\nopen(desk + '/report.txt', 'w').write('x')\n"
        "print(open('/data/output/r.json').read())")], DONE, "output/r.json", "Desktop/report.txt"),
    (13, "pip by subprocess, then a Word file", [], [python(
        "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', '-q', 'python-docx'])\n"
        "from docx import Document\nd = Document()\nd.add_heading('Report')\nd.save('report.docx')\nprint('saved')")], DONE, "report.docx", "/files/"),
    (14, "a virtual environment in bash", [], [bash("python3 -m venv .venv && . .venv/bin/activate && python -c 'import sys; print(sys.prefix)'")], DONE, "/data/.venv"),
    (15, "a project by heredocs and pytest", [], [bash(
        "mkdir -p src tests\ncat > src/calc.py <<'EOF'\ndef add(a, b):\n    return a + b\nEOF\n"
        "cat > tests/test_calc.py <<'EOF'\nfrom src.calc import add\ndef test_add():\n    assert add(1, 2) == 3\nEOF\npython -m pytest -q")], DONE, "1 passed"),
    (16, "a project by write_file", [wrote("util.py", "def double(n):\n    return 2 * n\n"), wrote("main.py", "from util import double\nprint(double(21))\n")],
     [bash("python main.py")], DONE, "42"),
    (17, "unittest", [], [python("import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(1 + 1, 2)\nunittest.main()")], "OK"),
    (18, "Excel with a chart", [], [python(
        "import xlsxwriter\nb = xlsxwriter.Workbook('a.xlsx')\ns = b.add_worksheet()\ns.write_column('A1', [1, 2, 3])\nc = b.add_chart({'type': 'line'})\n"
        "c.add_series({'values': '=Sheet1!$A$1:$A$3'})\ns.insert_chart('C1', c)\nb.close()\nprint('done')")], DONE, "a.xlsx"),
    (19, "Parquet", [], [python("import pandas as pd\npd.DataFrame({'a': [1, 2]}).to_parquet('a.parquet')\nprint(pd.read_parquet('a.parquet').a.sum())")], DONE, "3"),
    (20, "a Word report", [], [python("from docx import Document\nd = Document()\nd.add_heading('Bericht')\nd.add_paragraph('Ümlaut €')\nd.save('bericht.docx')")], DONE, "bericht.docx"),
    (21, "PowerPoint", [], [python("from pptx import Presentation\np = Presentation()\np.slides.add_slide(p.slide_layouts[0]).shapes.title.text = 'Hi'\np.save('a.pptx')")], DONE, "a.pptx"),
    (22, "an invoice as PDF", [], [python(
        "from fpdf import FPDF\np = FPDF()\np.add_page()\np.set_font('Helvetica', size=16)\np.cell(0, 10, 'Rechnung für Müller')\np.output('r.pdf')"),
        python("from reportlab.pdfgen import canvas\nc = canvas.Canvas('r.pdf')\nc.drawString(72, 720, 'Rechnung für Müller')\nc.save()")], DONE, "r.pdf"),
    (23, "read a PDF", [python("from reportlab.pdfgen import canvas\nc = canvas.Canvas('in.pdf')\nc.drawString(72, 720, 'Invoice 4711')\nc.save()")], [python("import pypdf\nprint(pypdf.PdfReader('in.pdf').pages[0].extract_text())")], DONE, "Invoice 4711"),
    (24, "OCR", [], [python(
        "from PIL import Image, ImageDraw\nimport pytesseract\ni = Image.new('RGB', (300, 80), 'white')\nImageDraw.Draw(i).text((10, 10), 'HELLO', fill=0, font_size=48)\n"
        "print(pytesseract.image_to_string(i))")], DONE, "HELLO"),
    (25, "edges with OpenCV", [], [python(
        "import cv2, numpy as np\ni = np.zeros((100, 100), np.uint8)\ncv2.circle(i, (50, 50), 30, 255, -1)\ncv2.imwrite('edges.png', cv2.Canny(i, 50, 150))"),
        python("from PIL import Image, ImageDraw, ImageFilter\ni = Image.new('L', (100, 100))\nImageDraw.Draw(i).ellipse((20, 20, 80, 80), fill=255)\ni.filter(ImageFilter.FIND_EDGES).save('edges.png')")],
     DONE, "edges.png"),
    (26, "a birthday card with Arial", [], [python(
        "from PIL import Image, ImageDraw, ImageFont\ni = Image.new('RGB', (400, 120), 'pink')\nImageDraw.Draw(i).text((10, 30), 'Happy birthday 🎂', font=ImageFont.truetype('arial.ttf', 40), fill='navy')\n"
        "i.save('card.png')\ni.show()")], DONE, "card.png", no("figure-1")),
    (27, "a WAV and the player of notebooks", [], [python(
        "import numpy as np\nfrom scipy.io import wavfile\nfrom IPython.display import Audio\nt = np.linspace(0, 1, 8000)\nwavfile.write('a.wav', 8000, (np.sin(2764 * t) * 30000).astype(np.int16))\nAudio('a.wav')")],
     DONE, "a.wav"),
    (28, "unpack and pack", [upload("in.zip", _zip())], [python(
        "import zipfile, shutil\nzipfile.ZipFile('in.zip').extractall()\nopen('in/c.txt', 'w').write(open('in/a.txt').read().upper())\nshutil.make_archive('out', 'zip', 'in')")], DONE, "out.zip"),
    (29, "SQL, the last expression a table", [], [python(
        "import sqlite3, pandas as pd\nc = sqlite3.connect('shop.db')\npd.DataFrame({'item': ['pen'], 'n': [3]}).to_sql('orders', c, index=False)\nc.commit()\npd.read_sql('select * from orders', c)")],
     DONE, "pen", "shop.db"),
    (30, "plotly: write_html and show", [], [python("import plotly.express as px\nf = px.line(x=[1, 2, 3], y=[3, 1, 2])\nf.write_html('p.html')\nf.show()")], DONE, "p.html"),
    (31, "seaborn's own data", [], [
        python("import seaborn as sns\ndf = sns.load_dataset('penguins')\nprint(df.head())"),
        python("import seaborn as sns, pandas as pd\ndf = pd.DataFrame({'bill': [39.1, 46.5], 'species': ['Adelie', 'Gentoo']})\nsns.stripplot(df, x='species', y='bill')\nprint(df.head())")],
     DONE, "Adelie"),
    (32, "seaborn's newer options", [], [python("import seaborn as sns, matplotlib.pyplot as plt\nsns.barplot(x=['a', 'b'], y=[1, 2], hue=['a', 'b'], legend=False)\nplt.show()")], DONE, "[image]"),
    (33, "a graph", [], [python("import networkx as nx, matplotlib.pyplot as plt\ng = nx.karate_club_graph()\nnx.draw(g)\nplt.savefig('g.png')\nnx.number_connected_components(g)")], DONE, "g.png", "1"),
    (34, "grid search", [], [python(
        "from sklearn.datasets import load_digits\nfrom sklearn.ensemble import RandomForestClassifier\nfrom sklearn.model_selection import GridSearchCV\nX, y = load_digits(return_X_y=True)\n"
        "g = GridSearchCV(RandomForestClassifier(random_state=0), {'n_estimators': [50, 100], 'max_depth': [5, None]}, cv=3).fit(X, y)\nprint(g.best_params_)"), tool("get_run")],
     DONE, "max_depth"),
    (35, "statsmodels", [], [python("import numpy as np, statsmodels.api as sm\nx = np.arange(20.)\nprint(sm.OLS(2 * x + 1, sm.add_constant(x)).fit().summary())")], DONE, "R-squared"),
    (36, "an integral, the last expression", [], [python("from sympy import *\nx = symbols('x')\nintegrate(x * exp(x), x)")], DONE, "(x - 1)*exp(x)"),
    (37, "multiprocessing", [], [python("from multiprocessing import Pool\ndef f(x): return x * x\nif __name__ == '__main__':\n    with Pool(4) as p: print(p.map(f, range(5)))")], DONE, "[0, 1, 4, 9, 16]"),
    (38, "training of 70 seconds", [], [
        python("import time\nfor epoch in range(35):\n    time.sleep(2)\n    print('epoch', epoch)\nprint('trained')"), tool("get_run")], DONE, "trained"),
    (39, "a CSV of a million rows", [], [python(
        "import pandas as pd, numpy as np\nn = 1_000_000\npd.DataFrame({'d': pd.date_range('2020', periods=n, freq='min'), 'k': np.random.choice(list('abc'), n), 'v': np.random.rand(n)}).to_csv('big.csv', index=False)\n"
        "df = pd.read_csv('big.csv', parse_dates=['d'])\ndf.groupby('k').v.describe()")], DONE, "mean", "big.csv"),
    (40, "scraping", [], [python("import requests\nprint(requests.get('https://example.com').text[:50])"), python("import requests\nprint(requests.get('https://example.com').text[:50])", network=True)], DONE, "html"),
    (41, "a web server on localhost", [], [python(
        "import threading, urllib.request\nfrom http.server import ThreadingHTTPServer, SimpleHTTPRequestHandler\ns = ThreadingHTTPServer(('localhost', 8000), SimpleHTTPRequestHandler)\n"
        "threading.Thread(target=s.serve_forever, daemon=True).start()\nprint(urllib.request.urlopen('http://localhost:8000/').status)")], "200", DONE),
    (42, "git", [], [bash("git init -q repo && cd repo && echo hi > a && git add . && git commit -qm first && git log --oneline")], DONE, "first"),
    (43, "C", [], [bash("cat > a.c <<'EOF'\n#include <stdio.h>\nint main(void) { puts(\"hi from C\"); }\nEOF\ngcc -O2 a.c -o a && ./a")], DONE, "hi from C"),
    (44, "Java, Go, R", [], [bash("java -version"), bash("Rscript -e 'cat(1 + 1)'")], DONE),
    (45, "pandoc", [], [bash("echo '# Title' > a.md && pandoc a.md -o a.docx"),
                        python("from docx import Document\nd = Document()\nd.add_heading('Title')\nd.save('a.docx')")], DONE, "a.docx"),
    (46, "a GIF of a 3-d surface", [], [python(
        "import numpy as np, matplotlib.pyplot as plt\nfrom matplotlib.animation import FuncAnimation\nf, ax = plt.subplots(subplot_kw={'projection': '3d'})\nx, y = np.meshgrid(np.linspace(-3, 3, 40), np.linspace(-3, 3, 40))\n"
        "def draw(i):\n    ax.clear()\n    ax.plot_surface(x, y, np.sin(x + i / 5) * np.cos(y))\nFuncAnimation(f, draw, frames=30).save('s.gif', fps=10)")], DONE, "s.gif", no("0 bytes")),
    (47, "an MP4", [], [
        python("import numpy as np, matplotlib.pyplot as plt\nfrom matplotlib.animation import FuncAnimation\nf, ax = plt.subplots()\nl, = ax.plot([])\nFuncAnimation(f, lambda i: l.set_data([0, i], [0, i]), frames=5).save('s.mp4')"),
        python("import numpy as np, matplotlib.pyplot as plt\nfrom matplotlib.animation import FuncAnimation\nf, ax = plt.subplots()\nl, = ax.plot([])\nFuncAnimation(f, lambda i: l.set_data([0, i], [0, i]), frames=5).save('s.gif')")],
     DONE, "s.gif"),
    (48, "graphviz", [], [python("import graphviz\ng = graphviz.Digraph()\ng.edge('a', 'b')\ng.render('gv', format='png')")], DONE, "gv.png"),
    (49, "chess", [], [python("import chess\nb = chess.Board()\nb.push_san('e4')\nprint(b)")], DONE, "P"),
    (50, "a map", [], [python("import folium\nm = folium.Map([52.5, 13.4])\nm.save('m.html')"),
                       python("import plotly.express as px\npx.scatter_geo(lat=[52.5], lon=[13.4]).write_html('m.html')")], DONE, "m.html"),
    (51, "Fernet", [], [python("from cryptography.fernet import Fernet\nk = Fernet(Fernet.generate_key())\nprint(k.decrypt(k.encrypt(b'secret')))")], DONE, "b'secret'"),
    (52, "units", [], [python("import pint\nu = pint.UnitRegistry()\n(5 * u.mile).to('km')")], DONE, "8.04"),
    (53, "2000!", [], [python("import math\nprint(math.factorial(2000))"), python("import math, sys\nsys.set_int_max_str_digits(0)\nprint(math.factorial(2000))")], DONE, "3316275"),
    (54, "Lorenz, 3-d", [], [python(
        "import numpy as np, matplotlib.pyplot as plt\nfrom scipy.integrate import solve_ivp\ns = solve_ivp(lambda t, p: [10 * (p[1] - p[0]), p[0] * (28 - p[2]) - p[1], p[0] * p[1] - 8 / 3 * p[2]], (0, 40), [1, 1, 1], max_step=0.02)\n"
        "plt.axes(projection='3d').plot(*s.y)\nplt.show()")], DONE, "[image]"),
    (55, "a linear program", [], [python("from scipy.optimize import linprog\nr = linprog([-1, -2], A_ub=[[1, 1], [1, 3]], b_ub=[4, 6])\nprint(r.x)")], DONE, "[3. 1.]"),
    (56, "time zones and a German locale", [], [python(
        "import locale, datetime, zoneinfo\nlocale.setlocale(locale.LC_ALL, 'de_DE.UTF-8')\nprint(locale.currency(1234.5, grouping=True), datetime.datetime(2025, 3, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).strftime('%A'))")],
     DONE, "1.234,50", "Samstag"),
    (57, "Chinese, Hindi and emoji in a plot", [], [python("import matplotlib.pyplot as plt\nplt.title('中文 日本語 한국어 हिन्दी 🎉')\nplt.plot([1, 2])\nplt.show()")], DONE, "[image]", no("findfont"), no("missing")),
    (58, "HTML tables and YAML", [], [python(
        "import io, yaml, pandas as pd\nprint(yaml.safe_load('a: [1, 2]'))\npd.read_html(io.StringIO('<table><tr><th>city</th></tr><tr><td>Rome</td></tr></table>'))[0]")], DONE, "Rome"),
    (59, "20,000 lines of output", [], [python("for i in range(20000):\n    print('line', i)")], DONE, "line 0\n", "line 19999", "left out"),
    (60, "a report of large pictures", [], [python(
        "import numpy as np, pandas as pd, seaborn as sns, matplotlib.pyplot as plt\nd = pd.DataFrame(np.random.rand(500, 5), columns=list('abcde'))\nsns.pairplot(d).savefig('pairs.png', dpi=300)\nplt.figure()\n"
        "sns.heatmap(d.corr(), annot=True)\nplt.savefig('heat.png', dpi=300)"), tool("get_run")], DONE, "pairs.png", "heat.png"),
    (61, "100,000 rows to Excel, a photo of 24 megapixels", [], [python(
        "import numpy as np, pandas as pd\nfrom PIL import Image\nImage.new('RGB', (6000, 4000), 'red').rotate(37, expand=True).save('r.jpg')\npd.DataFrame(np.random.rand(100000, 5)).to_excel('big.xlsx')"), tool("get_run")],
     DONE, "big.xlsx", "r.jpg", no("incomplete")),
    (62, "TypeScript: files beside __dirname", [], [typescript(
        "import * as fs from 'fs';\nimport * as path from 'path';\nconst os = require('os');\nfs.writeFileSync(path.join(__dirname, 'out.json'), JSON.stringify({ cpus: os.cpus().length > 0 }));\nconsole.log('saved');")],
     DONE, "out.json"),
    (63, "TypeScript: lodash and zod by require", [], [typescript("const _ = require('lodash');\nconst { z } = require('zod');\nconsole.log(_.chunk([1, 2, 3], 2), z.number().parse(3));")], DONE, "[ 1, 2 ]"),
    (64, "TypeScript: fetch", [], [typescript("const r = await fetch('https://example.com');\nconsole.log(r.status);"), typescript("const r = await fetch('https://example.com');\nconsole.log(r.status);", network=True)],
     DONE, "200"),
    (65, "TypeScript: the last expression", [], [typescript("const words = ['b', 'a'];\nwords.sort()")], DONE, '[ "a", "b" ]'),
    (66, "TypeScript: tests", [], [typescript("import { test, expect } from 'bun:test';\ntest('adds', () => expect(1 + 1).toBe(2));")], DONE, "1 pass"),
    (67, "TypeScript: older decorators", [], [typescript(
        "function log(target: any, key: string, d: PropertyDescriptor) {\n  const f = d.value;\n  d.value = function (...a: any[]) { console.log('call', key); return f.apply(this, a); };\n}\n"
        "class A { @log add(a: number, b: number) { return a + b; } }\nconsole.log(new A().add(1, 2));")], DONE, "call add", "3"),
    (68, "TypeScript: a web server", [], [typescript(
        "import { createServer } from 'http';\nconst s = createServer((q, r) => r.end('hello')).listen(3000, async () => {\n  console.log(await (await fetch('http://localhost:3000')).text());\n  s.close();\n});")],
     DONE, "hello"),
    (69, "TypeScript: a chart as SVG", [], [typescript(
        "await Bun.write('/mnt/data/chart.svg', `<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"200\" height=\"100\"><rect width=\"50\" height=\"80\" fill=\"teal\"/><text x=\"60\" y=\"50\">日本</text></svg>`);")],
     DONE, "chart.svg", "[image]"),
    (70, "TypeScript: JSX", [], [typescript(
        "import { renderToString } from 'react-dom/server';\nconst Hi = ({ name }: { name: string }) => <b>Hi {name}</b>;\nconsole.log(renderToString(<Hi name=\"Ada\" />));")], DONE, "Ada"),
]
