"""RUNNER_EXTRAS: an image with R, PHP and media, which stage "images" has made."""
import subprocess

import sites
from harness import TOP, check, contains, equal, new_folder, test

LANGUAGES = ["bash", "php", "python", "r", "typescript"]


def client():
    site = sites.with_settings(SANDBOX_IMAGES="sandcgi-test-extras", SANDBOX_MEMORY="1g", SANDBOX_WARM="python=1",
                               SANDBOX_INDEXES=f"python=https://127.0.0.1:{sites.free_port()}/simple")
    return sites.new_conversation(site.client())


@test("an image with extras: list_runners and run_code name its languages, versions and what they bring", timeout=180)
def _():
    runners = {one["language"]: one for one in client().structured("list_runners", {})["languages"]}
    equal(sorted(runners), LANGUAGES)
    for language, names in (("r", ("ggplot2", "dplyr", "data.table")), ("php", ("mbstring", "gd", "pdo_sqlite")), ("bash", ("ffmpeg", "Rscript", "php", "jq")),
                            ("python", ("av", "mutagen", "pandas"))):
        check(runners[language]["version"][0].isdigit(), runners[language])
        equal([name for name in names if name not in str(runners[language]["libraries"])], [], language)
    tools = {one["name"]: one for one in client().result("tools/list")["tools"]}
    equal(sorted(tools["run_code"]["inputSchema"]["properties"]["language"]["enum"]), LANGUAGES)


@test("programs in R: output, arguments, input, files, pictures, an error; after one in Python in the same container", timeout=180)
def _():
    one = client()
    equal(one.run("open('a.csv', 'w').write('x,y\\n1,2\\n3,4\\n')")["status"], "ok")
    result = one.run("""suppressMessages({library(dplyr); library(ggplot2)})
rows <- read.csv("a.csv") |> mutate(sum = x + y)
cat(rows$sum, commandArgs(TRUE), readLines(file("stdin")), "\\n")
ggsave("a.png", ggplot(rows, aes(x, y)) + geom_point(), width = 2, height = 2)
write.csv(rows, "b.csv")""", "r", args=["one", "two"], stdin="typed\n")
    equal((result["stdout"], result["exitCode"]), ("3 7 one two typed \n", 0), result["stderr"])
    equal(sorted(file["name"] for file in result["files"]), ["a.png", "b.csv"])
    result = one.run("stop('on purpose')", "r")
    equal((result["status"], result["exitCode"]), ("error", 1))
    contains(result["stderr"], "on purpose")
    equal(one.run("print(open('b.csv').read().count('sum'))")["stdout"], "1\n")


@test("programs in PHP: output, arguments, input, files, an error, a time limit", timeout=180)
def _():
    one = client()
    result = one.run("""<?php
echo array_sum([1, 2]), " ", implode(" ", array_slice($argv, 1)), " ", trim(fgets(STDIN)), "\\n";
file_put_contents("a.json", json_encode(["a" => mb_strtoupper("\u00e4")], JSON_UNESCAPED_UNICODE));
exit(3);""", "php", args=["one", "two"], stdin="typed\n")
    equal((result["stdout"], result["exitCode"]), ("3 one two typed\n", 3), result["stderr"])
    equal([file["name"] for file in result["files"]], ["a.json"])
    equal(one.run("cat a.json", "bash")["stdout"], '{"a":"\u00c4"}')
    contains(str(one.run("<?php nowhere();", "php")), "Call to undefined function nowhere()")
    equal(one.run("<?php sleep(60);", "php", timeout=2)["status"], "timeout")


@test("media: ffmpeg, sox and ImageMagick for bash and subprocess, PyAV for Python", timeout=180)
def _():
    one = client()
    result = one.run("""set -e
ffmpeg -v error -f lavfi -i testsrc=size=64x48:rate=10:duration=1 -pix_fmt yuv420p a.mp4
sox -n a.wav synth 1 sine 440
convert -size 8x8 xc:blue a.gif""", "bash")
    equal((result["exitCode"], sorted(file["name"] for file in result["files"])), (0, ["a.gif", "a.mp4", "a.wav"]), result["stderr"])
    result = one.run("""import av, subprocess
with av.open("a.mp4") as film:
    print(sum(1 for _ in film.decode(video=0)))
print(subprocess.run(["ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", "a.wav"], capture_output=True, text=True).stdout)""")
    equal(result["stdout"], "10\n1.000000\n\n", result["stderr"])


@test("install_package tells what an extra has brought, and which extra brings a program that is not there", timeout=180)
def _():
    one = client()

    def told(*packages):
        result = one.tool("install_package", {"conversationId": one.conversation, "language": "python", "packages": list(packages), "waitMs": 100000})
        return result["content"][0]["text"]
    contains(told("ffmpeg"), "ffmpeg is there: a program")
    contains(told("tesseract"), "tesseract is a program and no package of Python: the server's operator can add it (the extra ocr)")
    contains(told("golang-go", "yaml"), "(the extra go)")


def fingerprint(extras, *options):
    """(exit status, output) of the builder that is asked what it would make."""
    environment = sites.clean_environment() | {"RUNNER_EXTRAS": extras}
    done = subprocess.run([f"{TOP}/runners/build.sh", "--fingerprint", *options], capture_output=True, text=True, check=False, env=environment)
    return done.returncode, done.stdout + done.stderr


@test("RUNNER_EXTRAS: an extra that there is not is refused with the list; the settings file counts where the environment has none")
def _():
    status, text = fingerprint("r cobol")
    equal(status, 1)
    contains(text, "RUNNER_EXTRAS: there is no 'cobol'; there are: browser documents fortran go java lua media ocr octave perl php r ruby rust vision")
    status, text = fingerprint("", "--try-extras", "a")  # a part of a name is none
    equal(status, 1)
    contains(text, "there is no extra 'a'; there are: browser ")
    settings = f"{new_folder('settings')}/sandcgi.conf"
    with open(settings, "w", encoding="ascii") as file:
        file.write('MCP_API_TOKEN=x\nRUNNER_EXTRAS="r, media r"\n')
    plain = fingerprint("", "--settings", f"{settings}.none")[1].strip()
    for extras, wanted in (("", f"{plain}+media+r"), ("php", f"{plain}+php")):
        equal(fingerprint(extras, "--settings", settings), (0, f"{wanted}\n"))
