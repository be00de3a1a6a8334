"""Python as people write it in notebooks; pip and npm within programs; pictures"""
import re

from first_tries import bash, no, python, tool, typescript


def session(*cells):
    return [python(cell, session=True) for cell in cells]


PLOT = "import matplotlib.pyplot as plt\n"
ONE_PICTURE = re.compile(r"^(?!.*\[image\].*\[image\]).*\[image\]", re.S)
ROWS = (
    ("a last value is shown", python("prices = [3, 4, 5]\nsum(prices) / len(prices)"), "4.0"),
    ("after other output, too", python("print('total')\n{'a': 1}"), re.compile(r"total\n\{'a': 1\}")),
    ("a table at the end", python("import pandas as pd\ndf = pd.DataFrame({'city': ['Rome', 'Oslo'], 'n': [3, 1]})\ndf.sort_values('n')"), re.compile(r"Oslo +1")),
    ("a long table is as short as pandas makes it", python("import pandas as pd\npd.DataFrame({'n': range(5000)})"), "[5000 rows x 1 columns]", no("2500")),
    ("describe() as a last line", python("import pandas as pd\npd.Series([1, 2, 3], name='x').describe()"), "count", "std"),
    ("a group as a last line", python("import pandas as pd\npd.DataFrame({'k': ['a', 'b', 'a'], 'v': [1, 2, 3]}).groupby('k')['v'].sum()"), re.compile(r"a +4\nb +2")),
    ("a query as a last line", python("import sqlite3, pandas as pd\ndb = sqlite3.connect(':memory:')\ndb.executescript('create table t(a); insert into t values (7)')\n"
                                      "pd.read_sql('select a + 1 as b from t', db)"), re.compile(r"b\n0 +8")),
    ("a formula as a last line", python("from sympy import *\nx = symbols('x')\nintegrate(sin(x), x)"), "-cos(x)"),
    ("an array", python("import numpy as np\nnp.arange(6).reshape(2, 3)"), "array([[0, 1, 2],"),
    ("a huge list is cut", python("[n * n for n in range(100000)]"), "(100,000 items)", no("9999800001")),
    ("nothing for None", python("x = [2, 1]\nx.sort()"), no("None")),
    ("nothing behind a semicolon", python("print('a')\n'secret';"), no("secret")),
    ("what plot returns is the picture", python(f"{PLOT}plt.plot([1, 2])"), "[image]", no("Line2D")),
    ("a title as a last line", python(f"{PLOT}plt.bar(['a'], [1])\nplt.title('x')"), "[image]", no("Text(")),
    ("display of a table", python("import pandas as pd\ndf = pd.DataFrame({'a': [10]})\ndisplay(df)\nprint('end')"), re.compile(r"0 +10\nend")),
    ("display of several things", python("display('one', 2, [3])"), re.compile(r"'one'\n2\n\[3\]")),
    ("a styled table", python("import pandas as pd\npd.DataFrame({'p': [0.256]}).style.format('{:.1%}')"), "25.6%"),
    ("display from IPython", python("from IPython.display import display, Markdown\ndisplay(Markdown('## Sum\\n**5**'))"), "## Sum\n**5**", no("object")),
    ("HTML is shown as its text", python("from IPython.display import HTML\nHTML('<ul><li>one</li><li>two &lt; 3</li></ul>')"), "one\ntwo < 3", no("<li>")),
    ("clear_output does nothing", python("from IPython.display import clear_output\nclear_output(wait=True)\nprint('after')"), "after", no("\x1b")),
    ("a sound", python("import numpy as np\nfrom IPython.display import Audio\nAudio(np.sin(np.arange(8000) / 9), rate=8000)"), "audio-1.wav"),
    ("%matplotlib inline", python(f"%matplotlib inline\n{PLOT}plt.plot([2, 1]); plt.show()"), "[image]", "exit code 0"),
    ("%matplotlib notebook", python(f"%matplotlib notebook\n{PLOT}plt.plot([2, 1])"), "[image]", no("Error")),
    ("settings of a notebook", python("%config InlineBackend.figure_format = 'retina'\n%load_ext autoreload\n%autoreload 2\nprint('ready')"), "ready", no("autoreload")),
    ("%%time", python("%%time\nn = sum(range(1000))\nprint(n)"), "499500", "Wall time"),
    ("%time and %timeit", python("%time x = 2 ** 10\n%timeit -n 3 -r 2 x + 1\nprint(x)"), "Wall time", "3 loops each", "1024"),
    ("%%writefile and %run", [python("%%writefile tool.py\nvalue = 6 * 7\nprint('made', value)"), python("%run tool.py\nvalue + 1")], "made 42", "43"),
    ("%%bash", python("%%bash\nset -o pipefail\nprintf '3\\n1\\n' | sort | head -1"), "1"),
    ("%cd, %pwd, %ls", python("%mkdir sub\n%cd sub\n!touch here\n%ls"), "/data/sub", "here"),
    ("%env", python("%env MODE=fast\nimport os; print(os.environ['MODE'])"), "fast"),
    ("%who", python("alpha = 1\n%who"), "alpha"),
    ("%%capture", python("%%capture\nprint('hidden')"), no("hidden")),
    ("a magic that is not there", python("%lprun -f f f()\n%whatever 3\nprint('goes on')"), "%whatever is not known here", "goes on", "exit code 0"),
    ("a command", python("!echo from the shell | tr a-z A-Z"), "FROM THE SHELL"),
    ("a command with a variable", python("name = 'Ann'\n!echo hello {name} and $name"), "hello Ann and Ann"),
    ("what a command prints as a list", python("open('b.txt', 'w').close()\nfiles = !ls *.txt\nprint(len(files), files[0])"), "1 b.txt"),
    ("a command in a loop", python("for n in (1, 2):\n    !echo number {n}"), "number 1\nnumber 2"),
    ("help with ?", python("def area(r):\n    '''The area of a circle.'''\n    return 3 * r * r\narea?"), "The area of a circle."),
    ("await at the top", python("import asyncio\nasync def get(n):\n    await asyncio.sleep(0.01)\n    return n * 2\nresults = await asyncio.gather(get(1), get(2))\nresults"), "[2, 4]"),
    ("async with at the top", python("import asyncio\nlock = asyncio.Lock()\nasync with lock:\n    print(lock.locked())"), "True"),
    ("an exported notebook", python("get_ipython().run_line_magic('matplotlib', 'inline')\nget_ipython().system('echo exported')"), "exported"),
    ("code that is indented as a whole", python("    total = 0\n    for n in range(4):\n        total += n\n    print(total)"), "6", "exit code 0"),
    ("an error after a magic has its own line", python("%matplotlib inline\nx = 1\nx / 0"), "line 3", "ZeroDivisionError"),
    ("a wrong line after a magic is what is told", python("%matplotlib inline\nprint('a'"), "'(' was never closed", "line 2"),
    ("a value that cannot be shown", python("class Odd:\n    def __repr__(self):\n        raise RuntimeError('no')\nprint('done')\nOdd()"), "done", "exit code 0", "could not be shown"),
    ("!pip install", python("!pip install humanize\nprint('next')"), "humanize is not installed: install_package", "next", no("No matching distribution")),
    ("%pip of what is there", python("%pip install -q pandas openpyxl\nimport openpyxl; print('fine')"), "fine", no("not installed")),
    ("pip in a subprocess, by an import's name",
     python("import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'docx'])\nimport docx; print('fine')"), "python-docx", "fine"),
    ("pip in os.system", python("import os\nprint(os.system('pip install cowsay==5.0'))"), "cowsay==5.0 is not installed: install_package"),
    ("a bare pip line", python("pip install emoji\nprint('next')"), "emoji is not installed: install_package", "next"),
    ("pip in bash, with requirements", bash("printf 'numpy\\nflask>=2\\n' > requirements.txt; pip install -r requirements.txt"), "flask>=2 is not installed: install_package", no("numpy is not")),
    ("npm in bash", bash("npm install left-pad"), "left-pad is not installed: install_package", no("ConnectionRefused")),
    ("npm of what is there", bash("npm i lodash && echo fine"), "lodash is there", "fine"),
    ("npm leaves no files", [bash("npm install left-pad || true"), tool("list_files")], no("package.json")),
    ("npx in TypeScript", typescript("const r = Bun.spawnSync(['npx', 'cowsay', 'hi']); console.log(r.stderr.toString(), r.exitCode)"), "cowsay is not installed: install_package"),
    ("parts of a line before the time limit", python("import time\nfor n in range(20): print(n, end=' ')\ntime.sleep(30)", timeoutMs=3000), "17 18 19"),
    ("parts of a line before a kill", python("import os, sys, time\nsys.stdout.write('half a line')\ntime.sleep(0.5)\nos.kill(os.getpid(), 9)"), "half a line"),
    # Four sessions may be open by default.
    ("a session echoes, and knows the last value", session("x = 20\nx", "print('a')\n_ + 1"), re.compile("a\n21")),
    ("magics and display in a session", session("%matplotlib inline\nimport pandas as pd\nn = 5", "!echo {n}\n%time n + 1\ndisplay(pd.Series([8]))\n'end'"),
     "5\n", "Wall time", re.compile(r"0 +8"), "'end'"),
    ("exit() in a session leaves the next cell whole, which may begin with a byte order mark", session("exit()", "\ufeffinput()"), "EOFError", no("ValueError")),
    ("parts of a line in a session", session("import time", "print('half', end='')\ntime.sleep(0.4)\nimport os; os.kill(os.getpid(), 9)"), "half"),
    ("TkAgg", python(f"import matplotlib\nmatplotlib.use('TkAgg')\n{PLOT}plt.scatter([1], [2])\nplt.show()"), "[image]", no("Error")),
    ("Qt5Agg by switch_backend", python(f"{PLOT}plt.switch_backend('Qt5Agg')\nplt.pie([1, 2])"), "[image]", no("Error")),
    ("save and show of PIL give one picture", python("from PIL import Image\nim = Image.new('RGB', (64, 64), 'teal')\nim.save('card.png')\nim.show()"), ONE_PICTURE, no("figure-1")),
    ("an image as a last value", python("from PIL import Image\nImage.new('RGB', (64, 64), 'teal')"), "[image]", no("<PIL")),
    ("an animation gives one picture", python(f"{PLOT}from matplotlib.animation import FuncAnimation, PillowWriter\nfig, ax = plt.subplots()\nline, = ax.plot([], [])\n"
                                              "FuncAnimation(fig, lambda i: line.set_data([0, i], [0, 1]), frames=3).save('move.gif', writer=PillowWriter(fps=5))"), "move.gif", no("figure-1")),
    ("a plotly chart", python("import plotly.graph_objects as go\ngo.Figure(go.Bar(y=[1, 2])).show()"), "figure-1.html", "no browser"),
    ("an altair chart as a last value", python("import altair as alt, pandas as pd\nalt.Chart(pd.DataFrame({'a': [1, 2]})).mark_point().encode(x='a')"), "figure-1.html"),
    ("a graph as a last value", python("import graphviz\ng = graphviz.Digraph()\ng.edge('a', 'b')\ng"), "[image]"),
    ("a label outside of the axes is in the picture", python(f"{PLOT}plt.figure(figsize=(2, 2))\nplt.plot([1])\nplt.text(1.3, 0.5, 'far to the right', transform=plt.gca().transAxes)\n"
                                                             "plt.show()\nfrom PIL import Image\nprint(Image.open('figure-1.png').width > 230)"), "True"),
    ("23 figures", python(f"{PLOT}plt.rcParams['figure.max_open_warning'] = 0\nfor n in range(23):\n    plt.figure(figsize=(1, 1)); plt.plot([n])"), "3 more figures"),
    ("a font that is not there is told once", python(f"{PLOT}plt.rcParams['font.family'] = 'Nowhere Sans'\nplt.title('a'); plt.xlabel('b'); plt.ylabel('c')\nplt.savefig('a.png')"),
     re.compile(r"^(?!.*findfont.*findfont)", re.S)),
)
