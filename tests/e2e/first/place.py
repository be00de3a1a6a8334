"""a program lives where its files are"""
import re

from first_tries import bash, no, python, tool, typescript


def wrote(name, text):
    return tool("write_file", filename=name, text=text)


def session(code):
    return typescript(code, session=True)


BESIDE = "import os; open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'report.txt'), 'w').write('made it')"
OUT = "const fs = require('fs'), path = require('path'); fs.writeFileSync(path.join(__dirname, 'out.json'), '[1, 2]');"

ROWS = (
    # Python
    ("a result beside __file__ is a file of the run", python(BESIDE), "report.txt", "exit code 0"),
    ("and is there for the next call", [python(BESIDE), python("print(open('report.txt').read())")], "made it"),
    ("Path(__file__).resolve().parent", python(
        "from pathlib import Path\nhere = Path(__file__).resolve().parent\n(here / 'made').mkdir()\n(here / 'made' / 'a.csv').write_text('x')\nprint(here)"),
     "/data", "made/a.csv"),
    ("reading beside __file__", [wrote("cfg/settings.json", '{"port": 81}'), python(
        "import json, pathlib\nprint(json.loads((pathlib.Path(__file__).parent / 'cfg/settings.json').read_text())['port'])")], "81"),
    ("chdir to the script's folder", [wrote("in.txt", "seen"), python("import os, sys\nos.chdir(os.path.dirname(sys.argv[0]))\nprint(open('in.txt').read())")], "seen"),
    ("sys.path with the script's folder", [wrote("lib/calc.py", "def twice(x): return 2 * x"), python(
        "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))\nimport calc\nprint(calc.twice(21))")], "42"),
    ("a program that starts itself", python(
        "import subprocess, sys\nif len(sys.argv) > 1:\n    print('child', sys.argv[1])\nelse:\n    print(subprocess.run([sys.executable, __file__, 'one'], capture_output=True, text=True).stdout)"),
     "child one"),
    ("processes that are spawned", python(
        "import multiprocessing as mp\ndef f(x): return x * x\nif __name__ == '__main__':\n    with mp.get_context('spawn').Pool(2) as p: print(p.map(f, [3, 4]))"), "[9, 16]"),
    ("inspect.getsource of an own function", python("import inspect\ndef own(): return 'it'\nprint(inspect.getsource(own))"), "return 'it'"),
    ("a traceback has the line of the program", python("x = 1\nraise ValueError('bad input')"), "line 2", "raise ValueError", "bad input"),
    ("logging to a file beside the program", python(
        "import logging, os\nlogging.basicConfig(filename=os.path.join(os.path.dirname(__file__), 'app.log'), level=20)\nlogging.info('up')"), "app.log"),
    ("sqlite beside the program", python("import sqlite3, os\nc = sqlite3.connect(os.path.join(os.path.dirname(__file__), 'shop.db'))\nc.execute('create table t (a)')\nc.commit()"),
     "shop.db"),
    ("unittest.main finds the tests of the program", python("import unittest\nclass T(unittest.TestCase):\n    def test_it(self): self.assertEqual(1, 1)\nunittest.main()"), "OK"),
    ("the program is no file of the run", python("open('only.txt', 'w').write('x')"), "only.txt", no(".script")),
    ("glob does not see it", python("import glob\nprint(glob.glob('*'))"), "[]"),
    ("nor does os.listdir", python("import os\nprint(os.listdir('.'), os.listdir(b'/data'))"), "[] []"),
    ("nor os.walk, pathlib, scandir", python(
        "import os, pathlib\nprint(list(os.walk('.')), list(pathlib.Path('.').iterdir()), list(pathlib.Path('.').rglob('*')))\n"
        "with os.scandir() as found: print([e.name for e in found])"), "[('.', [], [])] [] []\n[]"),
    ("it is in no archive of the files", python(
        "import shutil, zipfile\nopen('a.txt', 'w').write('x')\nprint(zipfile.ZipFile(shutil.make_archive('/tmp/all', 'zip', '/data')).namelist())"),
     "['a.txt']", no(".script")),
    ("fs.readdir does not see it", typescript(
        "import { readdirSync, promises } from 'fs';\nconsole.log(JSON.stringify([readdirSync('.'), await promises.readdir('.', { recursive: true })]));"), "[[],[]]"),
    ("nor does git", bash("git init -q . && echo x > a.txt && git add -A && git status --short"), "A  a.txt", no(".script")),
    ("nor a cell of a session", typescript("import { readdirSync } from 'fs';\nreaddirSync('.').length;\nconsole.log(readdirSync('.'));", session=True),
     "[]", no(".cell")),
    ("list_files does not show it", [python("open('a.txt', 'w').write('x')"), tool("list_files")], "a.txt", no(".script")),
    ("not even hidden", [python("open('.keep', 'w').write('x')"), tool("list_files", includeHidden=True)], ".keep", no(".script")),
    ("a file of that name is the user's", [bash("echo mine > .script.py"), python("print(open('.script.py').read())")], "mine"),
    ("and stays", [bash("echo mine > .script.py"), python("print(__file__)"), bash("cat .script.py")], "mine"),
    ("it runs from another name then", [bash("echo mine > .script.py"), python("print(__file__)")], "/data/.script-2.py"),
    ("a program may remove itself", [python("import os\nos.remove(__file__)\nprint('gone')"), python("print('next')")], "next", "exit code 0"),
    ("a program that is ended by its time leaves none", [python("import time\ntime.sleep(9)", timeoutMs=1000), bash("ls -A")], no(".script.py"), "exit code 0"),
    ("one that is killed leaves none", [python("import os\nos.kill(os.getpid(), 9)"), bash("ls -A")], no(".script.py"), "exit code 0"),
    # TypeScript
    ("a result beside __dirname", typescript(OUT), "out.json", "exit code 0"),
    ("and is there for the next call", [typescript(OUT), python("print(open('out.json').read())")], "[1, 2]"),
    ("import of ./util", [wrote("util.ts", "export const double = (n: number) => 2 * n;"), typescript("import { double } from './util';\nconsole.log(double(4));")], "8"),
    ("import of ./lib/index by its folder", [wrote("lib/index.ts", "export default 'lib';"), typescript("import lib from './lib';\nconsole.log(lib);")], "lib"),
    ("require of ./x", [wrote("x.js", "module.exports = { n: 5 };"), typescript("const { n } = require('./x');\nconsole.log(n + 1);")], "6"),
    ("a JSON file as a module", [wrote("data.json", '{"k": [7]}'), typescript("import data from './data.json';\nconsole.log(data.k[0]);")], "7"),
    ("await import of an own module", [wrote("late.ts", "export const late = 'yes';"), typescript("const { late } = await import('./late.ts');\nconsole.log(late);")], "yes"),
    ("import.meta.dir and url", typescript("console.log(import.meta.dir, import.meta.url, import.meta.main);"), "/data file:///data/.script.ts true"),
    ("fileURLToPath for __dirname", typescript(
        "import { fileURLToPath } from 'url';\nimport { dirname, join } from 'path';\nimport { writeFileSync } from 'fs';\nconst here = dirname(fileURLToPath(import.meta.url));\nwriteFileSync(join(here, 'esm.txt'), 'x');"),
     "esm.txt"),
    ("new URL beside import.meta.url", [wrote("in.txt", "text"), typescript("console.log(await Bun.file(new URL('./in.txt', import.meta.url)).text());")], "text"),
    ("a Worker by its path", [wrote("w.ts", "postMessage('from worker');"), typescript(
        "const w = new Worker(new URL('./w.ts', import.meta.url).href);\nw.onmessage = (e) => { console.log(e.data); w.terminate(); };")], "from worker"),
    ("paths of a tsconfig.json", [wrote("tsconfig.json", '{"compilerOptions": {"paths": {"@lib/*": ["./lib/*"]}}}'), wrote("lib/a.ts", "export const a = 'aliased';"),
                                  typescript("import { a } from '@lib/a';\nconsole.log(a);")], "aliased"),
    ("an error has the line of the program", typescript("const x: number = 1;\nthrow new Error('bad');"), ".script.ts:2", "bad"),
    ("process.exit after a large write loses nothing", typescript("process.stdout.write('x'.repeat(1_000_000) + 'END\\n');\nprocess.exit(0);"), "END", "exit code 0"),
    ("nor after many", typescript("for (let i = 0; i < 60000; i++) process.stdout.write(`line ${i}\\n`);\nprocess.exit(2);"), "line 59999", "exit code 2"),
    ("nor on standard error", typescript("process.stderr.write('y'.repeat(400_000) + 'LAST\\n');\nprocess.exit(1);"), "LAST", "exit code 1"),
    ("a session's cell imports ./util", [wrote("util.ts", "export const three = 3;"), session("import { three } from './util';\nconsole.log(three * 2);")], "6"),
    ("a session's cell writes beside __dirname", session("require('fs').writeFileSync(require('path').join(__dirname, 'cell.txt'), 'x');"), "cell.txt", no(".cell")),
    ("a session's cells keep their variables and their place", [wrote("d.json", '{"v": 9}'), session("const d = require('./d.json');"), session("console.log(d.v, import.meta.dir);")], "9 /data"),
    # Tests and JSX
    ("tests of bun:test", typescript("import { expect, test } from 'bun:test';\ntest('adds', () => expect(1 + 1).toBe(2));"), "1 pass", "exit code 0"),
    ("one that fails", typescript("import { describe, expect, it } from 'bun:test';\ndescribe('sum', () => { it('adds', () => { expect(1).toBe(2); }); });"), "1 fail", "exit code 1"),
    ("tests of node:test", typescript("import test from 'node:test';\nimport assert from 'node:assert';\ntest('even', () => assert.equal(4 % 2, 0));"), "1 pass", "exit code 0"),
    ("tests with jest's names", typescript("const sum = (a: number, b: number) => a + b;\ndescribe('sum', () => {\n  it('adds', () => { expect(sum(1, 2)).toBe(3); });\n});"), "1 pass"),
    ("JSX with an own function", typescript(
        "/** @jsx h */\nconst h = (tag: string, _: unknown, ...c: string[]) => `<${tag}>${c.join('')}</${tag}>`;\nconsole.log(<p>hi {'you'}</p>);"), "<p>hi you</p>"),
    ("JSX with React", typescript(
        "import { renderToString } from 'react-dom/server';\nconst Hi = ({ name }: { name: string }) => <b>Hi {name}</b>;\nconsole.log(renderToString(<Hi name=\"Ada\" />));"), "Ada</b>"),
    ("legacy decorators on one line", typescript(
        "function log(t: any, k: string, d: PropertyDescriptor) { console.log('logged', k); }\nclass A { @log go() { return 7; } }\nconsole.log(new A().go());"), "logged go"),
    ("legacy decorators", typescript(
        "function log(t: any, k: string, d: PropertyDescriptor) { const f = d.value; d.value = function () { console.log('call', k); return f.apply(this); }; }\nclass A {\n  @log\n  go() { return 7; }\n}\nconsole.log(new A().go());"),
     "call go", "7"),
    # bash
    ("dirname $0", bash('cd "$(dirname "$0")" && pwd && echo x > here.txt'), "/data", "here.txt"),
    ("BASH_SOURCE", [wrote("lib.sh", "greet() { echo hello $1; }"), bash('DIR="$( cd "$( dirname "${BASH_SOURCE[0]}" )" && pwd )"\nsource "$DIR/lib.sh"\ngreet you')], "hello you"),
    ("realpath $0", bash('HERE=$(dirname "$(realpath "$0")")\nmkdir -p "$HERE/logs" && echo up > "$HERE/logs/run.log"'), "logs/run.log"),
    ("a script that calls itself", bash('[ "${1:-}" = again ] && { echo second; exit; }\nbash "$0" again'), "second"),
    ("ls does not show it", [wrote("a.txt", "x"), bash("ls")], "a.txt", no("script")),
    ("zip of everything beside it", [wrote("a.txt", "x"), bash("zip -q all.zip * && unzip -l all.zip")], "a.txt", no("script")),
)
