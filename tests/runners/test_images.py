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

PYTHON_IMPORTS = ("numpy pandas scipy matplotlib seaborn requests psycopg2 openpyxl reportlab".split())


def find_engine():
    for name in ("docker", "podman"):
        if shutil.which(name) and subprocess.run([name, "version"], capture_output=True).returncode == 0:
            return name
    return None


ENGINE = find_engine()


def label(language, name):
    p = subprocess.run([ENGINE, "image", "inspect", "--format", '{{ index .Config.Labels "%s" }}' % name,
                        f"sandcgi-runner-{language}:latest"], capture_output=True, text=True)
    return p.stdout.strip() if p.returncode == 0 else None


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
        # Where the engine is on this machine, the folder is the same one there.
        self.dir = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.addCleanup(self.dir.cleanup)
        os.chmod(self.dir.name, 0o777)

    def command(self, language, user="1879048192:1879048192", memory="256m", cpus=("--cpus", "1")):
        return [ENGINE, "run", "--rm", "-i", "--network", "none", "--read-only", "--user", user,
                "--tmpfs", "/tmp:rw,nosuid,nodev,size=64m,mode=1777", "--cap-drop", "ALL",
                "--security-opt", "no-new-privileges", "--memory", memory, "--memory-swap", memory,
                "--pids-limit", "128", *cpus, "--log-driver", "none",
                "-v", f"{self.dir.name}:/data", f"sandcgi-runner-{language}:latest"]

    def run_in(self, language, code, user="1879048192:1879048192", memory="256m", **options):
        if label(language, "sandbox.build") is None:
            self.skipTest(f"no image for {language}: runners/build.sh {language}")
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

    def test_python_without_an_index_hears_pips_words(self):
        r = self.run_in("python", "import subprocess; print(subprocess.run(['pip', 'install', 'no-such'], capture_output=True).stderr.decode())")
        self.assertIn("No matching distribution found for no-such", bytes(r.out).decode())

    def test_python_as_any_user(self):
        r = self.run_in("python", "import os, matplotlib.pyplot as plt, seaborn\nplt.plot([1]); plt.savefig('c.png')\n"
                        "print(os.getuid())", user="4321:4321")
        self.check(r, "4321\n")

    def test_python_advertises_what_it_imports(self):
        names = [word.split("=")[0] for word in (label("python", "sandbox.libraries") or "").split()]
        for name in PYTHON_IMPORTS:
            self.assertIn(name, names)
        self.check(self.run_in("python", "".join(f"import {n}\n" for n in names)))

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
        p.stdin.write(sbx.preload(label("python", "sandbox.preload")))
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
        if label("typescript", "sandbox.build") is None:
            self.skipTest("no image for typescript: runners/build.sh typescript")
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
        if label(language, "sandbox.build") is None:
            self.skipTest(f"no image for {language}: runners/build.sh {language}")
        p = sbx.start(self.command(language, cpus=cpus), b"")
        stream = sbx.frames(p.stdout)
        names = label(language, "sandbox.preload")
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
                self.assertEqual(label(language, "sandbox.warm"), "true")
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

    def test_nothing_else_is_writable(self):
        r = self.run_in("bash", "find / -xdev -writable ! -type l ! -path '/proc/*' ! -path '/dev/*' 2>/dev/null | sort")
        self.check(r, "/data\n/tmp\n")

    def test_no_privileged_files(self):
        r = self.run_in("bash", "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status; mount -t tmpfs x /mnt 2>&1; unshare -r true 2>&1")
        self.assertIn("CapEff:\t0000000000000000\nNoNewPrivs:\t1\n", bytes(r.out).decode())
        self.assertNotEqual(r.report["exitCode"], 0)


if __name__ == "__main__":
    report.main(ENGINE is None and "no container engine answers")
