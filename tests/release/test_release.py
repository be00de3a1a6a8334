#!/usr/bin/env python3
"""Versions, releases, stamps of images: service/release/, runners/build.sh --fingerprint. In small repositories of their own; engine, make
and dpkg are stand-ins here: e2e/test_debian.py builds and upgrades a real package, "make distcheck" the tarball."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import pages  # noqa: E402 pylint: disable=wrong-import-position

TOP = pathlib.Path(os.environ.get("srcdir") or pathlib.Path(__file__).resolve().parents[2])
BUILD = pathlib.Path(os.environ.get("builddir") or TOP / "build-check")
DAY = 1776000000  # the repositories' time

STAND_IN = r"""#!/bin/bash
name=$(basename "$0")
echo "$name $*" >>"$STAND_INS/calls"
[[ ! ${FAIL:-} || "$name $*" != "$FAIL"* ]] || { echo "$name is broken" >&2; exit 1; }
case "$name $1" in
"make -C")
    [[ $3 != release ]] || exec "$SOURCE/service/release/release.sh" "$PWD/$2"
    version=${4#VERSION=} folder=$(mktemp -d)
    git -C "$SOURCE" archive --prefix="sandcgi-$version/" HEAD | tar -x -C "$folder"
    mkdir -p "$folder/sandcgi-$version/nginx/page/made"
    [[ ${NO_PAGE:-} ]] || echo page >"$folder/sandcgi-$version/nginx/page/made/index.html"
    echo "$version" >"$folder/sandcgi-$version/service/release/version"
    tar -cJf "$2/sandcgi-$version.tar.xz" -C "$folder" "sandcgi-$version"; rm -r "$folder" ;;
"dpkg-buildpackage "*) echo package >"../sandcgi_$(service/release/version.sh)_amd64.deb" ;;
"dpkg-deb -x")
    mkdir -p "$3/usr/bin"; name=${2##*/sandcgi_}
    printf '#!/bin/sh\necho sandcgi %s\n' "${PROGRAM:-${name%_amd64.deb}}" >"$3/usr/bin/sandcgi"; chmod +x "$3/usr/bin/sandcgi" ;;
"ldd "*) printf '\tlinux-vdso.so.1 (0x0)\n\tliba.so.1 => /lib/a/liba.so.1 (0x0)\n\tlibb.so.1 => /lib/b/libb.so.1 (0x0)\n' ;;
"dpkg-query -S") base=${2##*/}; echo "${base%%.*}1:amd64: $2"; exit 1 ;;
"dpkg-query -W") echo "${4%:*} 2:1.0+b1 amd64" ;;
"docker save") echo "image $2" ;;
"docker run") printf 'base-files 12 amd64\nlibc6 2.41-12+deb13u1 amd64\n' ;;
esac
"""


class Tree:
    """A repository with what the scripts look at."""

    def __init__(self, test, changes="# Changes\n\n## 0.3.0 - 2026-11-27\n\n- It began.\n"):
        self.base = pathlib.Path(tempfile.mkdtemp())
        test.addCleanup(shutil.rmtree, self.base)
        self.folder, self.seconds = self.base / "outer" / "sandcgi", DAY
        shutil.copytree(TOP / "service/release", self.folder / "service/release")
        (self.folder / "service/release/version").write_text("$Format:%ct %H$\n")
        (self.folder / "debian").mkdir()
        (self.folder / "CHANGELOG.md").write_text(changes)
        (self.folder / ".gitattributes").write_text("/service/release/version export-subst\n")
        (self.folder / "configure.ac").write_text("AC_PREREQ([2.71])\nAC_INIT([sandcgi], [0.3.0])\n")
        (self.folder / "debian/control").write_text("Maintainer: A <a@example.org>\n")
        (self.folder / "debian/changelog").write_text("sandcgi (0.3.0) unstable; urgency=medium\n")
        (self.folder / "runners").mkdir()
        (self.folder / "runners/build.sh").write_text('#!/bin/sh\nexec builder "$@"\n')
        (self.folder / "runners/build.sh").chmod(0o755)
        self.git("init", "-q", "-b", "main")
        self.commit()

    def environment(self):
        return os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
                             "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_COMMITTER_DATE": f"{self.seconds} +0700"}

    def git(self, *words, where=None):
        return subprocess.run(["git", *words], cwd=where or self.folder, env=self.environment(), check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, later=0):
        self.seconds += later
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "a change")
        return self.git("rev-parse", "--short=10", "HEAD")

    def run(self, script, *words, where=None, **environment):
        return subprocess.run([f"{where or self.folder}/service/release/{script}", *words], env=self.environment() | environment, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def version(self, where=None):
        done = self.run("version.sh", where=where)
        assert done.returncode == 0, done.stdout
        return done.stdout.rstrip("\n")


def debian_sorts(versions):
    return all(subprocess.run(["dpkg", "--compare-versions", one, "lt", other], check=False).returncode == 0 for one, other in zip(versions, versions[1:]))


class Versions(unittest.TestCase):
    def test_each_commit_behind_a_release_has_a_version_that_sorts_after_the_one_before(self):
        tree = Tree(self)
        found = [tree.version()]
        self.assertEqual(found, ["0.3.0"])
        commit = tree.commit(later=60)
        found.append(tree.version())
        self.assertEqual(found[-1], f"0.3.0+20260412T132100.2.g{commit}")
        for later in [0] * 9 + [1]:  # also those of one second
            tree.commit(later)
            found.append(tree.version())
        (tree.folder / "CHANGELOG.md").write_text("# Changes\n\n## Unreleased\n\n- More.\n\n## 0.3.0 - 2026-11-27\n\n- It began.\n")
        found.append(tree.version())
        self.assertRegex(found[-1], r"\.dirty$")
        tree.commit(later=1)
        found.append(tree.version())
        self.assertEqual(tree.run("cut.sh", "0.3.1").returncode, 0)
        found.append(tree.version())
        self.assertEqual(found[-1], "0.3.1")
        self.assertEqual(len(set(found)), len(found))
        if shutil.which("dpkg"):
            self.assertTrue(debian_sorts(found), found)

    def test_a_release_is_the_commit_that_names_it_first_and_no_merge_of_it(self):
        tree = Tree(self, "# Changes\n\n## Unreleased\n\n- More.\n\n## 0.3.0 - 2026-11-27\n")
        self.assertRegex(tree.version(), r"^0\.3\.0\+")
        tree.git("checkout", "-q", "-b", "side")
        tree.commit()
        tree.git("checkout", "-q", "main")
        tree.run("cut.sh", "0.4.0")
        release = tree.git("rev-parse", "--short=10", "HEAD")
        tree.git("checkout", "-q", "side")
        tree.git("merge", "-q", "--no-ff", "-m", "merge", "main")
        self.assertRegex(tree.version(), r"^0\.4\.0\+")
        tree.git("checkout", "-q", "main")
        self.assertEqual(tree.version(), "0.4.0")
        tree.commit()
        shallow = tree.base / "shallow"
        tree.git("clone", "-q", "--depth", "1", f"file://{tree.folder}", str(shallow))
        self.assertRegex(tree.version(shallow), r"^0\.4\.0\+2026")  # of the parent nothing is known
        tree.git("checkout", "-q", release)
        self.assertEqual(tree.version(), "0.4.0")

    def test_a_tree_without_git_knows_its_commit_from_the_archive_the_tarball_or_the_head(self):
        tree = Tree(self)
        commit, other = tree.commit(later=60), tree.base / "outer/other"
        shutil.copytree(tree.folder, other, ignore=shutil.ignore_patterns(".git"))
        tree.git("init", "-q", where=tree.base / "outer")  # that of another project
        self.assertEqual(tree.version(other), "0.3.0+0.gunknown")
        (other / ".git/refs/heads").mkdir(parents=True)  # what an image's context has
        for name in ("HEAD", "refs/heads/main"):
            shutil.copy(tree.folder / ".git" / name, other / ".git" / name)
        self.assertEqual(tree.version(other), f"0.3.0+0.g{commit}")
        tree.git("pack-refs", "--all")
        (other / ".git/refs/heads/main").unlink()
        shutil.copy(tree.folder / ".git/packed-refs", other / ".git/packed-refs")
        self.assertEqual(tree.version(other), f"0.3.0+0.g{commit}")
        shutil.rmtree(other / ".git")
        with subprocess.Popen(["git", "-C", str(tree.folder), "archive", "HEAD", "service/release/version"], stdout=subprocess.PIPE) as archive:
            subprocess.run(["tar", "-x", "-C", str(other)], stdin=archive.stdout, check=True)
        self.assertEqual(tree.version(other), f"0.3.0+20260412T132100.0.g{commit}")
        (other / "service/release/version").write_text("0.3.0+1.gabc\n")  # of "make dist"
        self.assertEqual(tree.version(other), "0.3.0+1.gabc")

    def test_the_header_is_written_only_for_another_version(self):
        tree, header = Tree(self), None
        header = tree.base / "header.h"
        tree.run("version.sh", "--header", str(header))
        self.assertEqual(header.read_text(), '#define SANDCGI_VERSION "0.3.0"\n')
        os.utime(header, (1, 1))
        tree.run("version.sh", "--header", str(header))
        self.assertEqual(header.stat().st_mtime, 1)
        commit = tree.commit()
        tree.run("version.sh", "--header", str(header))
        self.assertIn(commit, header.read_text())


class Cut(unittest.TestCase):
    def test_unreleased_becomes_a_release_in_a_changelog_of_any_length(self):
        tree = Tree(self, "# Changes\n\n## Unreleased\n\n" + "- A change with some words.\n" * 40000 + "\n## 0.3.0 - 2026-11-27\n" + "\n- Before.\n" * 40000)
        done = tree.run("cut.sh", "0.10.0")
        self.assertEqual(done.returncode, 0, done.stdout)
        heading = (tree.folder / "CHANGELOG.md").read_text().splitlines()[2]
        self.assertRegex(heading, r"^## 0\.10\.0 - \d{4}-\d\d-\d\d$")
        self.assertIn("AC_INIT([sandcgi], [0.10.0])\n", (tree.folder / "configure.ac").read_text())
        self.assertRegex((tree.folder / "debian/changelog").read_text(),
                         r"^sandcgi \(0\.10\.0\) unstable; urgency=medium\n\n  \* .*\n\n -- A <a@example\.org>  \w{3}, .* \+0000\n\nsandcgi \(0\.3\.0\)")
        self.assertEqual((tree.git("log", "-1", "--format=%s"), tree.git("status", "--porcelain"), tree.version()), ("Release 0.10.0", "", "0.10.0"))

    def test_what_cannot_be_a_release_is_refused_and_changes_nothing(self):
        full = "# Changes\n\n## Unreleased\n\n- More.\n\n## 0.3.0 - 2026-11-27\n\n- It began.\n"
        for changes, words, reason in ((full, (), "usage"), (full, ("0.4",), "three numbers"), (full, ("v0.4.0",), "three numbers"),
                                       (full, ("0.3.0",), "already"), (full, ("0.2.9",), "older than the last release, 0.3.0"),
                                       (full.replace("- More.\n", ""), ("0.4.0",), "nothing under"),
                                       (full.replace("## Unreleased\n\n- More.\n\n", ""), ("0.4.0",), "nothing under")):
            tree = Tree(self, changes)
            done = tree.run("cut.sh", *words)
            self.assertNotEqual(done.returncode, 0, reason)
            self.assertIn(reason, done.stdout)
            self.assertEqual((tree.git("status", "--porcelain"), tree.git("rev-list", "--count", "HEAD")), ("", "1"))
        tree = Tree(self, full)
        hook = tree.folder / ".git/hooks/pre-commit"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
        self.assertNotEqual(tree.run("cut.sh", "0.4.0").returncode, 0)
        self.assertEqual(tree.git("status", "--porcelain"), "")
        (tree.folder / "new").write_text("")
        self.assertIn("changes", tree.run("cut.sh", "0.4.0").stdout)


class Release(unittest.TestCase):
    def setUp(self):
        self.tree = Tree(self)
        self.commit = self.tree.commit(later=60)
        self.build, self.bin = self.tree.base / "build", self.tree.base / "bin"
        for folder in (self.build, self.bin):
            folder.mkdir()
        for name in ("make", "dpkg-buildpackage", "dpkg-deb", "ldd", "dpkg-query", "docker", "builder"):
            (self.bin / name).write_text(STAND_IN)
            (self.bin / name).chmod(0o755)

    def release(self, *parts, **environment):
        return self.tree.run("release.sh", str(self.build), *parts, PATH=f"{self.bin}:{os.environ['PATH']}", STAND_INS=str(self.bin),
                             SOURCE=str(self.tree.folder), **environment)

    def test_a_release_has_tarball_package_images_checksums_and_a_list_of_what_is_inside(self):
        done = self.release()
        self.assertEqual(done.returncode, 0, done.stdout)
        version = f"0.3.0+20260412T132100.2.g{self.commit}"
        tag, folder = version.replace("+", "-"), self.build / "release" / version
        images = [f"{name}-{tag}.tar.gz" for name in ("sandcgi", "sandcgi-nginx", "sandcgi-runners", "sandcgi-edge", "sandcgi-runner-workbench")]
        wanted = {f"sandcgi-{version}.tar.xz", f"sandcgi_{version}_amd64.deb", f"sandcgi-{version}.cdx.json", *images}
        sums = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
        self.assertEqual((set(sums), {one.name for one in folder.iterdir()}), (wanted, wanted | {"SHA256SUMS"}))
        for name, found in sums.items():
            self.assertEqual(hashlib.sha256((folder / name).read_bytes()).hexdigest(), found, name)
        for line in (self.bin / "calls").read_text().splitlines():
            if line.startswith("docker build"):
                self.assertNotIn("+", re.search(r" -t (\S+)", line).group(1))
        self.assertEqual([one.name for one in (self.build / "release").iterdir()], [version])
        self.check_parts(json.loads((folder / f"sandcgi-{version}.cdx.json").read_text()), images)

    def test_a_release_is_made_as_the_page_has_it(self):
        (self.tree.folder / "CHANGELOG.md").write_text("# Changes\n\n## Unreleased\n\n- More.\n\n## 0.2.0 - 2026-11-23\n\n- It began.\n")
        self.tree.commit(later=60)
        (self.tree.folder / "build").mkdir()
        done = subprocess.run(["bash", "-ec", pages.walked("service/README.md")["a release"]], cwd=self.tree.folder, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env=self.tree.environment() | {
                                  "PATH": f"{self.bin}:{os.environ['PATH']}", "STAND_INS": str(self.bin), "SOURCE": str(self.tree.folder)})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue((self.tree.folder / "build/release/0.3.0/SHA256SUMS").exists(), done.stdout)

    def check_parts(self, found, images):
        self.assertEqual((found["bomFormat"], found["specVersion"]), ("CycloneDX", "1.5"))
        inside = {one["name"]: (one["type"], [(part["name"], part["purl"]) for part in one["components"]]) for one in found["components"]}
        package = next(name for name in inside if name.endswith(".deb"))
        self.assertEqual(set(inside), {package, *images})
        kind, parts = inside[package]
        self.assertEqual((kind, [name for name, _ in parts]), ("application", ["liba1", "libb1"]))
        self.assertRegex(parts[0][1], r"^pkg:deb/[a-z.-]+/liba1@2%3A1\.0%2Bb1\?arch=amd64$")
        self.assertEqual(inside[images[0]], ("container", [("base-files", "pkg:deb/debian/base-files@12?arch=amd64"),
                                                           ("libc6", "pkg:deb/debian/libc6@2.41-12%2Bdeb13u1?arch=amd64")]))
        names = [part["bom-ref"] for one in found["components"] for part in [one, *one["components"]]]
        self.assertEqual(len(set(names)), len(names))

    def test_the_first_step_that_fails_ends_it_and_nothing_is_kept(self):
        for environment in ({"FAIL": "make -C"}, {"NO_PAGE": "1"}, {"FAIL": "dpkg-buildpackage"}, {"FAIL": "dpkg-deb"}, {"PROGRAM": "0.2.0"},
                            {"FAIL": "ldd"}, {"FAIL": "dpkg-query -W"}, {"FAIL": "docker build --target edge"}, {"FAIL": "docker save"},
                            {"FAIL": "docker run"}, {"FAIL": "builder"}):
            done = self.release(**environment)
            self.assertNotEqual(done.returncode, 0, environment)
            self.assertIn("nothing of this release is kept", done.stdout)
            self.assertEqual(list((self.build / "release").iterdir()), [], environment)
            self.assertNotIn("checksums", done.stdout)

    def test_parts_can_be_chosen_and_what_would_not_be_a_release_is_refused(self):
        self.assertIn("no part 'image'", self.release("image").stdout)
        done = self.release("tarball", "packages")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("docker", (self.bin / "calls").read_text())
        self.assertIn("there already", self.release("tarball").stdout)
        (self.tree.folder / "CHANGELOG.md").write_text("## 0.3.0 - 2026-11-27\n")
        self.assertIn("changes", self.release("tarball").stdout)


class Stamps(unittest.TestCase):
    def fingerprint(self, script):
        return subprocess.run([script, "--fingerprint"], check=True, capture_output=True, text=True, env=os.environ | {"RUNNER_EXTRAS": ""}).stdout

    def test_images_of_one_commit_have_one_stamp_from_the_tree_and_as_installed(self):
        if not (BUILD / "runners/sources").exists():
            self.skipTest("not built")
        base = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, base)
        programs, share = base / "libexec/runners", base / "share/runners"
        programs.mkdir(parents=True)
        for name in ("build.sh", "compile.sh", "extras.sh"):
            shutil.copy(TOP / "runners" / name, programs)
        shutil.copy(BUILD / "runners/sources", programs)
        script = programs / "build.sh"
        script.write_text(re.sub(r"^folders=.*", f"folders={share}", script.read_text(), flags=re.M))
        for name in re.findall(r"\brunners/(workbench/\S+)", (TOP / "runners/local.mk").read_text()):
            (share / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TOP / "runners" / name, share / name)
        self.assertEqual(self.fingerprint(str(script)), self.fingerprint(f"{TOP}/runners/build.sh"))
        (programs / "sources").write_text("another\n")
        self.assertNotEqual(self.fingerprint(str(script)), self.fingerprint(f"{TOP}/runners/build.sh"))

    def test_a_stamp_follows_the_sources_and_not_what_is_compiled_of_them(self):
        base = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, base)
        shutil.copytree(TOP / "runners", base / "runners", ignore=shutil.ignore_patterns("entry", "*.so*", "__pycache__"))
        script = f"{base}/runners/build.sh"
        before = self.fingerprint(script)
        (base / "runners/common/entry").write_text("compiled")
        (base / "runners/workbench/__pycache__").mkdir()
        (base / "runners/workbench/__pycache__/x.pyc").write_text("compiled")
        self.assertEqual(self.fingerprint(script), before)
        for name in ("common/util.c", "warm/warm.h", "nss/nss.c", "workbench/prepare"):
            with open(base / "runners" / name, "a", encoding="utf-8") as file:
                file.write("\n")
            after = self.fingerprint(script)
            self.assertNotEqual(after, before, name)
            before = after


if __name__ == "__main__":
    unittest.main()
