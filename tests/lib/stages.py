"""The stages of a run of the tests: what each does, what it needs, how many cores it keeps busy."""
import dataclasses
import os

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(TOP, "build-check")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"


@dataclasses.dataclass
class Stage:
    """A command that prints a line for each test, as tests/README.md tells."""
    name: str
    command: list
    needs: tuple = ()  # stages
    cores: float = 1  # that it keeps busy
    core: list = None  # further arguments in the run without options; None: it is no part of that
    alone: bool = False  # nothing runs beside it
    exports: bool = False  # it prints NAME=value for the environment of those that begin later
    words: str = None  # the option before each word of --only; None: words cannot choose
    sentences: bool = True  # the sentence of a test is such a word
    again: bool = False  # a failure gives the whole stage a second attempt
    whole: str = None  # what its end counts as, where it prints no line for each test
    tests: bool = True  # it has some, which must not be none
    help: str = None


def shell(*lines):
    """A command of the functions in the shell scripts beside this file."""
    return ["bash", "-euo", "pipefail", "-c", "\n".join([f'top="{TOP}" build="{BUILD}"', f'for part in report packages build engine node; do . "{TOP}/tests/lib/$part.sh"; done', *lines]), "tests"]


def python(path, *arguments):
    return [PYTHON, "-u", os.path.join(TOP, path), *arguments]


STAGES = (
    Stage("packages", shell("(($#)) || set -- build server browser rest", 'packages_ensure "$@"'), core=["build", "server", "browser"], tests=False),
    Stage("build", shell("build_program"), needs=("packages",), cores=2, core=[], tests=False),
    Stage("plain", shell("build_plain"), needs=("packages",), core=[], exports=True, tests=False),
    Stage("images", shell("engine_ready", f'"{PYTHON}" "{TOP}/tests/lib/leftovers.py"', "engine_images", "(($#)) || engine_extras"), needs=("packages",), core=["core"], exports=True, tests=False),
    Stage("npm", shell("npm_ready", "node_exports"), needs=("packages",), cores=0.3, core=[], exports=True, tests=False),
    Stage("e2e", python("tests/e2e/run.py", "--which", "beside", "--jobs", "3"), needs=("build", "plain", "images"), cores=2, core=["--core"], words="--only"),
    Stage("compose", ["env", "SANDCGI_TEST_ENGINE_NAME=compose", os.path.join(TOP, "tests/lib/engine.sh"), "with", *python("tests/e2e/run.py", "--which", "own-engine")],
          needs=("build", "images"), cores=0.5, words="--only"),
    Stage("units", shell("build_units"), needs=("build",), core=[], tests=False),
    Stage("unit", shell('unit_tests "$@"'), needs=("units", "images"), core=[], words=""),
    Stage("nginx", python("tests/nginx/run.py"), needs=("build",), core=[], words="", sentences=False, again=True),
    Stage("conformance", python("tests/conformance/run.py"), needs=("build", "images", "npm"), core=["--core"], words="--only"),
    Stage("browser", python("tests/browser/run.py"), needs=("build", "images", "npm"), core=["--only", "first visit"], words="--only"),
    Stage("distcheck", shell("dist_check"), needs=("units",), whole="make distcheck"),
    Stage("runners", python("tests/runners/test_images.py"), needs=("images",), again=True),
    Stage("compare", python("tests/runners/compare/run.py"), needs=("images",), cores=2, words="", sentences=False, again=True),
    Stage("cluster", python("tests/cluster/run.py"), needs=("build", "images"), words=""),
    Stage("e2e-alone", python("tests/e2e/run.py", "--which", "alone", "--jobs", "1"), needs=("build", "plain", "images"), alone=True, words="--only"),
    Stage("chaos", python("tests/chaos/run.py", "--seconds", os.environ.get("SANDCGI_TEST_CHAOS", "60")), needs=("build", "images"), alone=True, again=True),
)
# By name only.
BY_HAND = (
    Stage("machine", [os.path.join(TOP, "tests/machine/run.sh")], needs=("packages", "images"), alone=True, words="", help="the Debian package under systemd and cgroup v2, as an operator uses it"),
    Stage("bench", shell('export SANDCGI_TEST_BINARY=$SANDCGI_TEST_PLAIN_BINARY', "tests/bench/run_code.sh --quick", *(f"{PYTHON} tests/bench/{words}" for words in ("rhythm.py --part one --part close", "links.py", "edge.py", "disk.py"))),
          needs=("plain", "images"), alone=True, whole="bench", help="measure instead of testing"),
)


def by_name(name):
    return next((stage for stage in STAGES + BY_HAND if stage.name == name), None)


def name_of(one):
    """What --only takes to run a lines.Result again."""
    stage = by_name(one.stage)
    return f"{one.stage}:{one.sentence}" if stage.words is not None and stage.sentences and not one.whole else one.stage


def with_needs(names):
    """The stages of these names and all that they need, in the order of the table."""
    chosen = set()

    def add(name):
        if name not in chosen:
            chosen.add(name)
            for other in by_name(name).needs:
                add(other)
    for name in names:
        add(name)
    return [stage for stage in STAGES + BY_HAND if stage.name in chosen]
