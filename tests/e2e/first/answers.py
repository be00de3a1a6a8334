"""answers: advice, output in brief, files, links and pictures"""
import re

from first_tries import bash, no, python, tool, typescript

# The server of the tests gives no network unless it is told to.
NETWORK = re.compile(r"\n(no network: call again with network true|programs have no network on this server)\b")
NEW = "\nthis conversation is new and has no files: give the conversationId of before"
PLACES = "\nonly /data, which is kept, and /tmp can be written"
OPERATOR = " is not here: the server's operator can add it (the extra "
ANEW = "\neach call begins anew: "
DISPLAY = "\nthere is no display: "
PLOT = "import matplotlib.pyplot as plt\nfor i in range({n}):\n    plt.figure(); plt.plot([1, i]); plt.title(str(i))\nplt.show()\n"
NONE = {}  # names no conversation


def short(most):
    return re.compile(rf"\A[\s\S]{{0,{most}}}\Z")


ROWS = (
    # ---- network ----
    ("requests without network", python("import requests\nprint(requests.get('https://api.github.com/users/octocat').json())"),
     NETWORK, "line 2: print(requests.get(", no("site-packages"), no("/usr/lib"), short(420)),
    ("urllib without network", python("from urllib.request import urlopen\nurlopen('http://example.org/')"), NETWORK, short(420)),
    ("pandas reads a URL", python("import pandas as pd\npd.read_csv('https://example.org/data.csv')"), NETWORK, short(420)),
    ("a caught exception of the network", python("import requests\ntry:\n    requests.get('https://example.org')\nexcept Exception as e:\n    print('failed:', e)"),
     "exit code 0", NETWORK),
    ("curl", bash("curl -sS https://example.org"), NETWORK),
    ("wget", bash("wget https://example.org/a.zip"), NETWORK),
    ("git clone", bash("git clone https://github.com/octocat/Hello-World"), NETWORK),
    ("fetch", typescript("const r = await fetch('https://example.org'); console.log(r.status)"), NETWORK),
    ("axios", typescript("import axios from 'axios'; console.log((await axios.get('https://example.org')).data)"), NETWORK),
    ("a page that is about the network is no reason", python("print('a page about EAI_AGAIN')"), no("no network")),
    ("localhost of the user's computer", python("import requests\nrequests.get('http://localhost:8080/health')"), "\nlocalhost is the sandbox"),
    ("localhost in TypeScript", typescript("await fetch('http://127.0.0.1:3000')"), "\nlocalhost is the sandbox"),

    # ---- packages and programs ----
    ("a package that is not here", python("import polars_ols"), "\npolars_ols is not installed: install_package"),
    ("one of npm", typescript("import leftpad from 'left-pad'; console.log(leftpad('1', 5))"), "\nleft-pad is not installed: install_package"),
    ("a scoped one", typescript("import { QueryClient } from '@tanstack/query-core'; new QueryClient()"), "\n@tanstack/query-core is not installed: install_package"),
    ("python -m", bash("python3 -m flake8 a.py"), "\nflake8 is not installed: install_package"),
    ("an optional dependency", python("import pandas as pd\npd.DataFrame({'a': [1]}).to_hdf('a.h5', key='a')"), " is not installed: install_package"),
    ("Colab", python("from google.colab import files"), "this is not Colab"),
    ("ffmpeg by subprocess", python("import subprocess\nsubprocess.run(['ffmpeg', '-i', 'a.mp4', 'a.mp3'], check=True)"), "\nffmpeg" + OPERATOR + "media"),
    ("ffmpeg in bash", bash("ffmpeg -i a.mp4 a.mp3"), "\nffmpeg" + OPERATOR + "media"),
    ("pandoc by Bun's shell", typescript("await Bun.$`pandoc a.md -o a.html`"), "\npandoc" + OPERATOR + "documents"),
    ("java by spawn", typescript("Bun.spawnSync(['java', 'Main.java'])"), "\njava" + OPERATOR + "java"),
    ("R", bash("Rscript -e 'print(1)'"), "\nRscript" + OPERATOR + "r"),
    ("a program that no extra has", bash("htop"), "\nhtop is not here, and Debian's packages cannot be added"),
    ("sudo apt", bash("sudo apt-get install -y tree"), "\nDebian's packages cannot be added by programs"),
    ("apt without sudo", bash("apt-get install -y htop"), "\nDebian's packages cannot be added by programs"),
    ("an MP4 of matplotlib", python("import matplotlib.pyplot as plt, matplotlib.animation as a\nf, x = plt.subplots()\n"
                                    "a.FuncAnimation(f, lambda i: [], frames=2).save('a.mp4')"), "ffmpeg is not here"),

    # ---- displays, input, variables ----
    ("tkinter", python("import tkinter\ntkinter.Tk()"), DISPLAY),
    ("input()", python("name = input('Name? ')\nprint(name)"), "\nnobody types here: give the input as stdin"),
    ("more input() than lines", python("a = input(); b = input()", stdin="1\n"), "\nit read more lines than stdin has"),
    ("a variable of the call before", [python("df = 1"), python("print(df)")], ANEW + "with session true variables are kept"),
    ("one of TypeScript", [typescript("const total = 1"), typescript("console.log(total)")], ANEW + "with session true"),
    ("one of bash", [bash("total=1"), bash("set -u; echo $total")], ANEW + "variables are not kept"),
    ("a function of the call before", [python("def f(): pass"), python("f()")], ANEW),
    ("a misspelt name in the first call", python("pritn(1)", conversationId=NONE), no(ANEW)),

    # ---- files that are not there, places ----
    ("a file of a conversation that was forgotten", python("import pandas as pd\npd.read_csv('/mnt/data/sales.csv')", conversationId=NONE), NEW, short(450)),
    ("the same in TypeScript", typescript("import fs from 'fs'; fs.readFileSync('sales.csv')", conversationId=NONE), NEW),
    ("the same in bash", bash("head -3 sales.csv", conversationId=NONE), NEW),
    ("a file that is not there in a known conversation", [bash("echo 1 > a"), bash("cat b")], no("this conversation is new")),
    ("a place that is read-only", python("open('/etc/report.txt', 'w')"), PLACES),
    ("one in bash", bash("echo a > /opt/report.txt"), PLACES),
    ("one in TypeScript", typescript("import fs from 'fs'; fs.mkdirSync('/reports')"), PLACES),

    # ---- limits ----
    ("memory", python("a = []\nwhile True: a.append(bytearray(1 << 24))"), "ended: out of memory", re.compile(r"\n(\d+) [GM]B are allowed: read in pieces")),
    ("a matrix that cannot be", python("import numpy as np\nnp.zeros((1000000, 1000000))"), "of memory are allowed"),
    ("the time", python("import time\nprint('begun', flush=True)\ntime.sleep(60)", timeoutMs=2000), "begun", "stopped after", "timeoutMs allows up to"),
    ("threads", python("import threading, time\nfor i in range(5000): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()"),
     "processes and threads at once"),
    ("a command that there is not, of subprocess", python("import subprocess\nsubprocess.run(['htop', '-V'])"), "\nhtop is not here, and Debian's"),
    ("a module of one's own that is missing", python("import utils"), no("is not installed")),
    ("/tmp is full", python("with open('/tmp/a', 'wb') as f:\n    for i in range(900): f.write(bytes(1 << 20))"), re.compile(r"\n/tmp holds \d+ MB, /data more|out of memory")),

    # ---- output ----
    ("a progress bar", python("import sys, time\nfor i in range(101):\n    sys.stderr.write(f'\\r{i}%|' + '#' * i)\nprint('\\ndone')"), "100%|###", no("99%"), short(200)),
    ("tqdm", python("from tqdm import tqdm\nfor i in tqdm(range(300), mininterval=0): pass\nprint('done')"), "300/300", "done", short(250)),
    ("a spinner of backspaces", python("for i in range(500): print('|/-'[i % 3] + '\\b', end='')\nprint('ok')"), "ok", short(80)),
    ("a progress bar of TypeScript", typescript("for (let i = 0; i <= 100; i++) process.stdout.write(`\\rloading ${i}%`); console.log()"), "loading 100%", no("99%")),
    ("one of bash", bash("for i in $(seq 50); do printf '\\r%s/50 files' $i; done; echo"), "50/50 files", no("49/50")),
    ("all of it in full", python("import sys\nfor i in range(9): sys.stdout.write(f'\\r{i}%')", detail="full"), "3%"),
    ("equal lines", bash("yes 'warning: nothing to do' | head -200"), "warning: nothing to do (200 times)", short(120)),
    ("equal lines of Python", python("for i in range(60): print('findfont: Font family Foo not found.')"), "(60 times)", short(120)),
    ("lines that differ stay", bash("seq 1 40"), "1\n2\n3\n", "40\n"),
    ("a traceback through a library", python("import json\ndef load(text):\n    return json.loads(text)\nload('{')"),
     "line 4: load('{')\n", "line 3, in load: return json.loads(text)\n", "JSONDecodeError: ", no("/usr/lib"), short(350)),
    ("an exception that came of another", python("def f():\n    try:\n        return {}['a']\n    except KeyError as e:\n        raise ValueError('no a') from e\nf()"),
     "first: KeyError: 'a'", "line 6: f()\n", "ValueError: no a", short(250)),
    ("a traceback in full", python("import json\njson.loads('{')", detail="full"), "Traceback (most recent call last):", "/usr/lib/python3"),
    ("an error of syntax keeps its place", python("x = (1,\nprint(x"), "SyntaxError", "^"),
    ("long output goes on where it was cut", bash("seq 1 20000"), "bytes left out", "more output: get_run with runId"),

    # ---- files and links ----
    ("two files have one beginning of their links", python("open('a.csv', 'w').write('1')\nopen('b.html', 'w').write('<p>')"),
     re.compile(r"\nlinks: https://\S+/ \+ name\nb\.html\na\.csv")),
    ("one file has its link", python("open('a b.csv', 'w').write('1')"), re.compile(r"\na b\.csv: https://\S+/a%20b\.csv")),
    ("what people want is named first of many", bash("for i in $(seq 30); do echo $i > many_$i.txt; done; echo 1 > page.html; echo 1 > z.csv; echo 1 > x.pdf"),
     re.compile(r" \+ name\npage\.html\nx\.pdf\nz\.csv\nmany_1\.txt\nmany_2\.txt\n"), "\n23 more files: list_files"),
    ("list_files has the links", [bash("mkdir d; echo 1 > d/r.xlsx; echo 2 > n.txt"), tool("list_files", recursive=True)],
     re.compile(r"\Ad/r\.xlsx \(2 bytes\)\nn\.txt \(2 bytes\)\nd/\n"), re.compile(r"\nlinks: https://\S+/ \+ name")),
    ("list_files of one file", [bash("echo 1 > r.xlsx"), tool("list_files")], re.compile(r"r\.xlsx \(2 bytes\): https://\S+/r\.xlsx")),
    ("read_file has the link", [bash("echo hello > n.txt"), tool("read_file", filename="n.txt")], "hello", re.compile(r"\nlink: https://\S+/n\.txt\Z")),
    ("a picture that is read, too", [python("from PIL import Image\nImage.new('RGB', (9, 9)).save('p.png')"), tool("read_file", filename="p.png")],
     "[image]", re.compile(r"\nlink: https://\S+/p\.png")),
    ("an empty file says so", bash("touch empty.csv; echo 1 > full.csv"), "empty.csv (empty)"),
    ("files of a run that was stopped", python("open('half.xlsx', 'w').write('PK')\nimport time\ntime.sleep(60)", timeoutMs=2000), "half.xlsx (perhaps incomplete)"),
    ("of one that had no memory", python("open('half.csv', 'w').write('1')\na = []\nwhile True: a.append(bytearray(1 << 24))"), "half.csv (perhaps incomplete)"),
    ("nothing printed, nothing made", bash("true"), "printed nothing"),

    # ---- pictures ----
    ("twelve figures in their order", python(PLOT.format(n=12)), "pictures: figure-1.png, figure-2.png, figure-3.png, figure-4.png, and 8 more", "[image]"),
    ("two pictures by name", python("import time\nfrom PIL import Image\nfor n, c in (('z', 'red'), ('a', 'blue')): Image.new('RGB', (50, 50), c).save(n + '.png'); time.sleep(0.1)"),
     "pictures: z.png, a.png"),
    ("a picture that was saved twice is shown once", python("from PIL import Image\ni = Image.new('RGB', (50, 50), 'red')\ni.save('card.png'); i.save('figure.png')"),
     re.compile(r"\A[\s\S]*?\[image\](?![\s\S]*\[image\])")),
    ("a picture of 24 megapixels is seen", python("from PIL import Image\nImage.effect_noise((6000, 4000), 90).convert('RGB').save('photo.jpg')"), "[image]"),
    ("two SVG", python("for n in 'ab': open(n + '.svg', 'w').write('<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"><rect width=\"9\" height=\"%d\"/></svg>' % (ord(n) - 90))"),
     "pictures: a.svg, b.svg"),

    # ---- runs that go on ----
    ("a long run says how to go on", bash("echo begun; sleep 20", waitMs=1500), "begun", "still running", re.compile(r"\nget_run with runId \w+ and sinceByte 6 brings the rest")),
)
