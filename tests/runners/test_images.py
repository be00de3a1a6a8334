#!/usr/bin/env python3
"""The runner images in the shape that runs have, through docker or podman. Skips (77) without an engine or images."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import psandboxes  # noqa: E402
import report  # noqa: E402
import sbx  # noqa: E402

IMAGE = "sandcgi-runner-workbench:latest"
LANGUAGES = ["python", "typescript", "bash"]
# What its users rely on, and what no index is needed for.
ADVERTISED = {
    "python": "numpy pandas scipy matplotlib seaborn sklearn statsmodels xgboost networkx sympy skimage xarray plotly altair PIL imageio cairosvg "
              "graphviz folium shapely openpyxl xlsxwriter xlrd odf docx reportlab pypdf pdfminer sqlalchemy psycopg2 requests httpx lxml bs4 html5lib "
              "yaml jinja2 markdown tabulate tqdm cryptography pint nltk psutil pytest IPython",
    "typescript": "zod lodash dayjs date-fns axios cheerio csv-parse csv-parser papaparse exceljs docx pptxgenjs pdf-lib jszip mathjs pg postgres react react-dom",
    "bash": "git curl wget jq gawk sed grep bc file tree less diff patch xxd tar gzip bzip2 xz zstd zip unzip rsync ssh ps sqlite3 python3 pip node npm "
            "bun gcc g++ make dot pdftotext",
}


def find_engine():
    for name in ("docker", "podman"):
        if shutil.which(name) and subprocess.run([name, "version"], capture_output=True).returncode == 0:
            return name
    return None


ENGINE = find_engine()


def label(name):
    p = subprocess.run([ENGINE, "image", "inspect", "--format", '{{ index .Config.Labels "%s" }}' % name, IMAGE], capture_output=True, text=True)
    return p.stdout.strip() if p.returncode == 0 else None


# A little of what each library is for.
LIBRARIES_AT_WORK = """import io
import numpy as np, pandas as pd
x = np.random.default_rng(1).normal(size=(60, 2))
y = (x.sum(axis=1) > 0).astype(int)
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
print(cross_val_score(RandomForestClassifier(10, random_state=1), x, y, cv=3).mean() > 0.6)
import statsmodels.api as sm
print(sm.OLS(x[:, 0], x[:, 1]).fit().nobs)
import xgboost
print(xgboost.XGBClassifier(n_estimators=5).fit(x, y).predict(x).shape)
import networkx as nx
print(nx.shortest_path(nx.path_graph(3), 0, 2), len(nx.spring_layout(nx.path_graph(3))))
import skimage.feature, skimage.data
print(skimage.feature.canny(np.eye(20)).dtype)
import xarray, shapely, sympy, pint
print(xarray.DataArray(x).mean().shape, shapely.Point(0, 0).buffer(1).area > 3, sympy.integrate("x"), pint.UnitRegistry()("1 km").to("m").magnitude)
import plotly.express as px, altair, folium
print("plotly" in px.scatter(x=[1], y=[2]).to_html(), "vega" in altair.Chart(pd.DataFrame({"a": [1]})).mark_bar().to_html(), "leaflet" in folium.Map()._repr_html_())
import docx, openpyxl, xlsxwriter, xlrd, odf.opendocument
document = docx.Document(); document.add_heading("Title"); document.save("a.docx"); print(docx.Document("a.docx").paragraphs[0].text)
pd.DataFrame({"a": [1]}).to_excel("a.xlsx", engine="xlsxwriter"); print(pd.read_excel("a.xlsx")["a"].sum())
from reportlab.pdfgen.canvas import Canvas
canvas = Canvas("a.pdf"); canvas.drawString(100, 100, "in the PDF"); canvas.save()
import pypdf; print(pypdf.PdfReader("a.pdf").pages[0].extract_text().strip())
import graphviz; print(graphviz.Source("digraph { a -> b }").pipe("svg")[:5])
import imageio.v3 as iio; iio.imwrite("a.gif", np.stack([np.zeros((8, 8)), np.full((8, 8), 255)]).astype(np.uint8)); print(iio.imread("a.gif").shape)
import sqlalchemy; print(pd.read_sql("select 1 as a", sqlalchemy.create_engine("sqlite://"))["a"].sum())
import yaml, jinja2, markdown, tabulate, tqdm, bs4
print(yaml.safe_load("a: [1]"), jinja2.Template("{{ 1 + 1 }}").render(), markdown.markdown("*a*"), pd.DataFrame({"a": [1]}).to_markdown().count("a"))
print(pd.read_html(io.StringIO("<table><tr><th>a</th></tr><tr><td>1</td></tr></table>"))[0]["a"].sum(), bs4.BeautifulSoup("<b>x</b>", "html5lib").b.text)
from cryptography.fernet import Fernet; print(Fernet(Fernet.generate_key()).encrypt(b"a")[:2])
"""
LIBRARIES_SAID = """True
60.0
(60,)
[0, 1, 2] 3
bool
() True x**2/2 1000.0
True True True
Title
1
in the PDF
b'<?xml'
(2, 8, 8, 3)
1
{'a': [1]} 2 <p><em>a</em></p> 1
1 x
b'gA'
"""
# What is random in Bun, but for contexts of node:vm.
RANDOM = """const c = require("crypto");
console.log(Math.random(), Math.random(), crypto.randomUUID(), c.randomUUID(), Bun.randomUUIDv7(), crypto.getRandomValues(new Uint32Array(2)).join(),
  c.randomBytes(8).toString("hex"), c.randomInt(1e12), c.generateKeySync("hmac", { length: 64 }).export().toString("hex"),
  c.generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }).x, require("fs").mkdtempSync("/tmp/a"));
"""
# Of the container's processes but the first one and itself.
OTHERS = "const others = require('fs').readdirSync('/proc').filter((name) => name > 1 && name != process.pid);\n"


class Images(unittest.TestCase):
    def setUp(self):
        if label("sandbox.build") is None:
            self.skipTest("no image: runners/build.sh")
        # Where the engine is on this machine, the folder is the same one there.
        self.dir = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(self.dir.cleanup)
        os.chmod(self.dir.name, 0o777)

    def command(self, first=None, user="1879048192:1879048192", memory="256m", cpus=("--cpus", "1")):
        """A container in which the interpreter of that language waits; without one it is the image's."""
        entry = ["/usr/local/bin/entry", "-L", "/usr/local/lib/sandbox/languages", "-F", first] if first else []
        return [ENGINE, "run", "--rm", "-i", "--network", "none", "--read-only", "--user", user,
                "--tmpfs", "/tmp:rw,exec,nosuid,nodev,size=64m,mode=1777", "--cap-drop", "ALL",
                "--security-opt", "no-new-privileges", "--memory", memory, "--memory-swap", memory,
                "--pids-limit", "128", *cpus, "--log-driver", "none",
                "-v", f"{self.dir.name}:/data", *(["--entrypoint", entry[0]] if entry else []), IMAGE, *entry[1:]]

    def run_in(self, language, code, user="1879048192:1879048192", memory="256m", **options):
        return sbx.run(self.command(language, user, memory), sbx.program(code, deadline_ms=60000, **options))

    def check(self, r, out=None, code=0, err=b""):
        self.assertEqual((bytes(r.err), r.said), (err, b""))
        self.assertEqual((r.report["exitCode"], r.exit), (code, 0))
        if out is not None:
            self.assertEqual(bytes(r.out).decode(), out)

    def read(self, name):
        return pathlib.Path(self.dir.name, name).read_bytes()

    def test_python_makes_a_chart(self):
        pathlib.Path(self.dir.name, "a.csv").write_text("a,b\n1,2\n3,4\n")
        pathlib.Path(self.dir.name, "helper.py").write_text("x = 5\n")
        r = self.run_in("python", "import sys, helper, pandas, matplotlib.pyplot as plt\n"
                        "print(pandas.read_csv('/mnt/data/a.csv')['b'].mean(), helper.x, sys.argv[1:], input())\n"
                        "plt.plot([1, 2]); plt.savefig('chart.png')\n", stdin="line\n", args=["x y"])
        self.check(r, "3.0 5 ['x y'] line\n")
        self.assertTrue(self.read("chart.png").startswith(b"\x89PNG"))
        self.assertEqual(sorted(os.listdir(self.dir.name)), ["a.csv", "chart.png", "helper.py"])

    def test_python_installs_by_the_command_pip(self):
        made = self.run_in("python", """
import subprocess, zipfile
with zipfile.ZipFile("tidy-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("tidy/__init__.py", "def main(): print('ran')\\n")
    for name, text in (("METADATA", "Metadata-Version: 2.1\\nName: tidy\\nVersion: 1.0\\n"), ("RECORD", ""),
                       ("WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"),
                       ("entry_points.txt", "[console_scripts]\\ntidy = tidy:main\\n")):
        wheel.writestr("tidy-1.0.dist-info/" + name, text)
for words in (["pip", "install", "-q", "./tidy-1.0-py3-none-any.whl"], ["python", "-m", "pip", "install", "-q", "numpy"]):
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
""")
        self.check(made, "")
        self.check(self.run_in("python", "import subprocess, tidy; print(tidy.__file__, flush=True); subprocess.run('tidy')"),
                   "/data/.packages/python/tidy/__init__.py\nran\n")
        self.assertEqual(os.listdir(self.dir.name + "/.packages"), ["python"])

    def test_python_without_an_index_hears_what_has_one(self):
        r = self.run_in("python", "import subprocess; print(subprocess.run(['pip', 'install', 'no-such', 'yaml'], capture_output=True).stderr.decode())")
        self.check(r, "no-such is not installed: install_package\n\n")

    def test_python_as_any_user(self):
        r = self.run_in("python", "import os, matplotlib.pyplot as plt, seaborn\nplt.plot([1]); plt.savefig('c.png')\n"
                        "print(os.getuid())", user="4321:4321")
        self.check(r, "4321\n")

    def test_the_image_names_its_languages_and_what_they_have(self):
        self.assertEqual(label("sandbox.language").split(), LANGUAGES)
        for language in LANGUAGES:
            names = [word.split("=")[0] for word in label(f"sandbox.libraries.{language}").split()]
            self.assertEqual(set(ADVERTISED[language].split()) - set(names), set())
        self.assertRegex(label("sandbox.version.python"), r"^3\.13\.")
        self.assertRegex(label("sandbox.version.typescript"), r"^Bun 1\.")

    def test_python_imports_what_it_advertises(self):
        names = [word.split("=")[0] for word in label("sandbox.libraries.python").split()]
        self.check(self.run_in("python", "".join(f"import {n}\n" for n in names), memory="1g"))

    def test_python_libraries_work(self):
        self.check(self.run_in("python", LIBRARIES_AT_WORK, memory="1g"), LIBRARIES_SAID)

    def test_python_runs_tests_and_makes_environments(self):
        pathlib.Path(self.dir.name, "test_sum.py").write_text("def test_sum():\n    assert 1 + 1 == 2\n")
        r = self.run_in("bash", "python -m pytest -q -p no:cacheprovider | tail -n 1 | cut -d ' ' -f 1,2; python3 -m venv v && . v/bin/activate && pip --version | cut -d ' ' -f 1",
                        memory="512m")
        self.check(r, "1 passed\npip\n")

    def test_typescript_runs_tests(self):
        pathlib.Path(self.dir.name, "sum.test.ts").write_text("import { expect, test } from 'bun:test';\ntest('sum', () => expect(1 + 1).toBe(2));\n")
        self.assertIn(b" 1 pass\n", bytes(self.run_in("bash", "bun test 2>&1").out))

    def test_python_turns_svg_into_png(self):
        r = self.run_in("python", "import cairosvg\ncairosvg.svg2png(bytestring=b'<svg xmlns=\"http://www.w3.org/2000/svg\" "
                        "width=\"9\" height=\"9\"><text x=\"1\" y=\"8\">hi</text></svg>', write_to='s.png')")
        self.check(r)
        self.assertTrue(self.read("s.png").startswith(b"\x89PNG"))

    def test_python_out_of_memory_is_reported(self):
        r = self.run_in("python", "print('begun')\nkeep = [bytearray(1 << 22) for _ in range(1000)]", memory="64m")
        self.assertEqual(bytes(r.out), b"begun\n")
        self.assertEqual((r.report["exitCode"], r.report["signal"]), (-1, 9))
        self.assertGreater(r.report["oomKills"], 0)

    def test_python_memory_that_a_preload_lacked_is_not_the_programs(self):
        p = sbx.start(self.command("python", memory="40m"), b"")
        self.addCleanup(p.wait)
        self.assertEqual(sbx.read_tier(sbx.frames(p.stdout)), "started")
        p.stdin.write(sbx.preload(label("sandbox.preload")))
        p.stdin.flush()
        self.assertEqual(sbx.read_tier(sbx.frames(p.stdout)), "preloaded")
        p.stdin.write(sbx.program("import sys; sys.exit(1)", deadline_ms=60000))
        p.stdin.flush()
        r = sbx.collect(p)
        self.assertEqual((r.report["exitCode"], r.report["oomKills"]), (1, 0))

    def test_python_printed_lines_survive_a_kill(self):
        r = self.run_in("python", "import os\nprint('line')\nos.kill(os.getpid(), 9)")
        self.assertEqual((bytes(r.out), r.report["signal"]), (b"line\n", 9))

    def test_typescript_reads_csv_and_writes_json(self):
        pathlib.Path(self.dir.name, "a.csv").write_text("a,b\n1,2\n3,4\n")
        r = self.run_in("typescript", "import csv from 'csv-parser'; import Papa from 'papaparse'; import pg from 'pg';\n"
                        "import postgres from 'postgres'; import fs from 'fs';\nconst rows: unknown[] = [];\n"
                        "fs.createReadStream('a.csv').pipe(csv()).on('data', (d) => rows.push(d)).on('end', () => {\n"
                        "  fs.writeFileSync('o.json', JSON.stringify(rows));\n"
                        "  console.log(Papa.parse('a,b').data.length, typeof pg.Client, typeof postgres);\n});")
        self.check(r, "1 function function\n")
        self.assertEqual(self.read("o.json"), b'[{"a":"1","b":"2"},{"a":"3","b":"4"}]')
        self.assertEqual(sorted(os.listdir(self.dir.name)), ["a.csv", "o.json"])

    def test_typescript_does_not_fetch_packages(self):
        r = self.run_in("typescript", "import x from 'left-pad'; console.log(x)")
        self.assertEqual(r.report["exitCode"], 1)
        self.assertIn(b"left-pad", bytes(r.err))

    def test_typescript_arguments_input_and_exit_code(self):
        r = self.run_in("typescript", "console.log(process.argv.slice(2), await Bun.stdin.text()); process.exit(9)",
                        args=["x", "y z"], stdin="in", user="4321:4321")
        self.check(r, '[ "x", "y z" ] in\n', code=9)

    def open_typescript(self):
        """A container for runs that follow one another."""
        container = psandboxes.Psandbox(self.command("typescript"))
        self.addCleanup(container.close)
        return container

    def run_next(self, container, code, out=None, started="warm", env=()):
        end = container.run(code=code, env=env)
        self.assertEqual((end.started, bytes(end.err), end.report["exitCode"]), (started, b"", 0))
        self.assertIsNone(container.next())
        if out is not None:
            self.assertEqual(bytes(end.out).decode(), out)
        return bytes(end.out).decode()

    def test_typescript_runs_in_one_container_share_no_random_state(self):
        container = self.open_typescript()
        for code, started in ((RANDOM, "warm"), ("console.log(require('vm').runInNewContext('Math.random()'))", "new")):
            rows = [self.run_next(container, code, started=started, env=["NAME=value"]).split() for _ in range(3)]
            for values in zip(*rows):
                self.assertEqual(len(set(values)), len(rows), values)

    def test_typescript_runs_in_one_container_find_the_files_of_those_before(self):
        container = self.open_typescript()
        foo = "/data/.packages/typescript/node_modules/foo"
        for code, out in ((f"await Bun.write('/data/own.ts', 'export const n: number = 1'); await Bun.write('{foo}/index.js', 'module.exports = 7')", ""),
                          ("import { n } from '/data/own.ts'; import foo from 'foo'; console.log(n, foo)", "1 7\n"),
                          ("await Bun.write('/data/own.ts', 'export const n: number = 2')", ""),
                          ("import { n } from '/data/own.ts'; console.log(n); require('fs').rmSync('/data/own.ts')", "2\n"),
                          ("await import('/data/own.ts').catch((problem) => console.log(problem.name))", "ResolveMessage\n")):
            self.run_next(container, code, out)

    def test_typescript_runs_have_threads_events_and_signals(self):
        container = self.open_typescript()
        for code, out in (("console.log(await new Promise((done) => require('zlib').gzip('a', (problem, data) => done(data.length > 9))))", "true\n"),
                          ("setTimeout(() => console.log('later'), 20); await Bun.sleep(10); console.log('now')", "now\nlater\n"),
                          ("process.on('SIGUSR2', () => process.exit(0)); setInterval(() => {}, 1000); process.kill(process.pid, 'SIGUSR2')", ""),
                          ("require('child_process').exec('echo $PPID', (problem, text) => console.log(text == process.pid + '\\n'))", "true\n"),
                          ("Bun.gc(true); let n = 0; for (let i = 0; i < 1e7; i++) n = (n * 31 + i) | 0; console.log(n)", "823511872\n")):
            self.run_next(container, code, out)

    def test_typescript_programs_do_not_reach_their_template(self):
        container = self.open_typescript()
        opened = "for (const name of ['mem', 'environ', 'maps', 'fd/3']) try { require('fs').openSync(`/proc/${others[0]}/${name}`, 'r+'); console.log(name); } catch {}"
        self.run_next(container, OTHERS + opened + "console.log(others.length)", "1\n")
        for number in (10, 12, 15, 30):  # 30: JavaScriptCore's own
            container = self.open_typescript()
            container.run(code=f"{OTHERS} process.kill(Number(others[0]), {number})")
            self.assertEqual(container.next(), "of the waiting interpreter, the signals changed")

    def test_bash(self):
        r = self.run_in("bash", 'jq -r .a <<<"{\\"a\\":\\"$1\\"}"; pwd; readlink -f /mnt/data; id -u; echo x > f', args=["v"])
        self.check(r, "v\n/data\n/data\n1879048192\n")

    def wait_in(self, language, code, tiers, cpus=("--cpus", "1"), **options):
        """As run_in, but the program comes after everything that the image offers is ready."""
        p = sbx.start(self.command(language, cpus=cpus), b"")
        stream = sbx.frames(p.stdout)
        names = label("sandbox.preload")
        self.assertEqual(sbx.read_tier(stream), "started")
        if "preloaded" in tiers:
            p.stdin.write(sbx.preload(names))
            p.stdin.flush()
            self.assertEqual(sbx.read_tier(stream), "preloaded")
        p.stdin.write(sbx.program(code, deadline_ms=60000, **options))
        p.stdin.flush()
        return sbx.collect(p)

    def test_programs_find_their_interpreter_waiting(self):
        for language, code, tiers, way in (("python", "print(1)", "started", "warm"), ("typescript", "console.log(1)", "started", "warm"),
                                           ("python", "import numpy; print(numpy.ones(1).sum().astype(int))", "preloaded", "warm"),
                                           ("bash", "echo 1", "started", "new")):
            with self.subTest(language=language, tiers=tiers):
                self.assertEqual(label("sandbox.warm"), "true")
                r = self.wait_in(language, code, tiers)
                self.check(r, "1\n")
                self.assertEqual(r.started, way)

    def test_python_preloaded_gives_way_to_files_of_the_same_name(self):
        pathlib.Path(self.dir.name, "numpy.py").write_text("print('mine')\n")
        r = self.wait_in("python", "import numpy", "preloaded")
        self.check(r, "mine\n")
        self.assertEqual(r.started, "new")

    def test_python_preloads_without_using_up_its_processor_time(self):
        r = self.wait_in("python", "import os\n"
                         "path = next(filter(os.path.exists, ('/sys/fs/cgroup/cpu.stat', '/sys/fs/cgroup/cpu/cpu.stat')))\n"
                         "print(dict(line.split() for line in open(path))['nr_throttled'])", "preloaded",
                         cpus=("--cpu-period", "1000000", "--cpu-quota", "500000"))
        self.check(r, "0\n")

    def test_languages_take_turns_in_one_container(self):
        container = psandboxes.Psandbox(self.command())
        self.addCleanup(container.close)
        for language, code, out in (("python", "open('n', 'w').write('1'); print('python')", "python\n"), ("bash", "echo bash; cat n", "bash\n1"),
                                    ("typescript", "const word: string = 'typescript'; console.log(word)", "typescript\n"),
                                    ("python", "print(open('n').read())", "1\n"), ("typescript", "console.log(require('fs').readFileSync('n', 'utf8'))", "1\n")):
            end = container.run(code=code, language=language)
            self.assertEqual((bytes(end.out).decode(), bytes(end.err), end.report["exitCode"]), (out, b"", 0))
            self.assertIsNone(container.next())

    def test_languages_call_each_other(self):
        words = "python3 --version; python -c 'import numpy; print(1)'; pip --version; node -p 1+1; npm --version; npx --version; bun --version; git --version"
        for language, code in (("bash", words), ("python", f"import subprocess; subprocess.run({words!r}, shell=True, check=True)"),
                               ("typescript", f"console.log(await Bun.$`sh -ec ${{{words!r}}}`.text())")):
            r = self.run_in(language, code)
            self.assertRegex(bytes(r.out).decode(), r"^Python 3\.13\.\d+\n1\npip .*\n2\n[\d.]+\n[\d.]+\n[\d.]+\ngit version")
            self.check(r)

    def test_bash_compiles_and_makes(self):
        r = self.run_in("bash", "set -e; cat >a.cpp <<<'#include <iostream>\nint main() { std::cout << 42 << std::endl; }'\n"
                        "printf 'a: a.cpp\\n\\tg++ -o a a.cpp\\n' >Makefile; make -s; ./a", memory="512m")
        self.check(r, "42\n")

    def test_bash_commits(self):
        r = self.run_in("bash", "set -e; git init -q; echo a >a; git add a; git commit -qm 'first change'; git log --format='%an %s'; git clone -q . copy; cat copy/a")
        self.check(r, "sandbox first change\na\n")

    def test_bash_knows_time_zones_and_locales(self):
        r = self.run_in("bash", "TZ=Europe/Berlin date -d @0 +%H; LC_ALL=de_DE.UTF-8 date -d @0 +%A; LC_ALL=en_US.UTF-8 locale charmap; LC_ALL=fr_FR locale mon | cut -c1-7")
        self.check(r, "01\nDonnerstag\nUTF-8\njanvier\n")

    def test_python_knows_locales(self):
        for name in ("en_US.UTF-8", "de_DE.UTF-8", "de_DE", "ja_JP.UTF-8", "hi_IN.UTF-8"):
            self.check(self.run_in("python", f"import locale; locale.setlocale(locale.LC_ALL, {name!r});"), "")

    def test_the_homes_of_other_assistants_lead_to_the_files(self):
        r = self.run_in("bash", "for place in /mnt/data /home/user /home/sandbox /mnt/user-data/outputs /workspace; do echo 1 >$place/n; readlink -f $place; done")
        self.check(r, "/data\n" * 5)

    def test_python_draws_all_scripts_without_a_warning(self):
        for setting in ("pass", "plt.rcParams['font.family'] = 'Arial'", "plt.rcParams['font.sans-serif'] = ['SimHei', 'Microsoft YaHei']",
                        "plt.rcParams['font.family'] = ['Calibri', 'Times New Roman']", "import seaborn; seaborn.set_theme()"):
            with self.subTest(setting=setting):
                r = self.run_in("python", "import warnings; warnings.simplefilter('error')\nimport matplotlib.pyplot as plt\n"
                                f"{setting}\nplt.title('中文 日本語 かな 한국어 हिन्दी 📈 😀 Äß€'); plt.savefig('a.png'); plt.savefig('a.pdf')", memory="512m")
                self.check(r, "")

    def test_python_finds_fonts_by_their_usual_names(self):
        names = "arial.ttf Arial.ttf arialbd.ttf calibri.ttf times.ttf cour.ttf helvetica.ttf simhei.ttf msyh.ttc DejaVuSans.ttf seguisym.ttf"
        r = self.run_in("python", f"from PIL import ImageFont\nfrom reportlab.pdfbase.ttfonts import TTFont\nfor name in {names!r}.split():\n"
                        "    ImageFont.truetype(name, 20)\n    name.startswith('DejaVu') or TTFont(name, name)\n"
                        "def drawn(name, text): return ImageFont.truetype(name, 40).getmask(text).getbbox()\n"
                        "print(all(drawn('simhei.ttf', c) != drawn('simhei.ttf', '\\U0010ffff') for c in '中한かカäB'))\n"
                        "print(ImageFont.truetype('seguiemj.ttf', 109).getmask('😀').getbbox() is not None)")
        self.check(r, "True\nTrue\n")

    def test_python_draws_all_scripts_of_an_svg(self):
        r = self.run_in("python", "import cairosvg\nfor family in ('Arial', 'serif'):\n    print(len({cairosvg.svg2png(bytestring=f'<svg xmlns=\"http://www.w3.org/2000/svg\" "
                        "width=\"40\" height=\"40\"><text y=\"30\" font-size=\"24\" font-family=\"{family}\">{c}</text></svg>'.encode()) for c in '中か한ह😀é'}))")
        self.check(r, "6\n6\n")

    def test_svg_finds_fonts_by_their_usual_names(self):
        r = self.run_in("bash", "for name in Arial SimHei 'Microsoft YaHei' Calibri Mangal; do fc-match -f '%{family[0]}\n' \"$name\"; done")
        self.check(r, "Liberation Sans\nWenQuanYi Micro Hei\nWenQuanYi Micro Hei\nCarlito\nLohit Devanagari\n")

    def test_nothing_else_is_writable(self):
        r = self.run_in("bash", "find / -xdev -writable ! -type l ! -path '/proc/*' ! -path '/dev/*' 2>/dev/null | sort")
        self.check(r, "/data\n/tmp\n")

    def test_no_privileged_files(self):
        r = self.run_in("bash", "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status; mount -t tmpfs x /mnt 2>&1; unshare -r true 2>&1")
        self.assertIn("CapEff:\t0000000000000000\nNoNewPrivs:\t1\n", bytes(r.out).decode())
        self.assertNotEqual(r.report["exitCode"], 0)


if __name__ == "__main__":
    report.main(ENGINE is None and "no container engine answers")
