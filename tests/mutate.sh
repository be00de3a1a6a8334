#!/usr/bin/env bash
# Would the tests notice? Faults in lines at random, one at a time, each with the tests that could see it.
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly top
readonly cache=${SANDCGI_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/sandcgi-tests}/mutate
seed=1 count=60 steps=unit,scripts,e2e
more=()

usage() {
    cat <<USAGE
usage: tests/mutate.sh [--seed N] [--count N] [OPTION]

Chooses lines of common/, fcgi/, runners/ and nginx/ at random, makes one fault in each, builds that in a scratch copy and runs
the tests that execute the line, the fastest first, until one fails. Tells who noticed each, and the faults that nobody noticed.
The same seed chooses the same faults of the same tree. Of C files, not of headers; of nginx/ without the page.

  --seed N       another choice (1)
  --count N      so many faults (60)
  --steps STEPS  some of unit, scripts (those of runners/ and nginx/), e2e (the core, with DOCKER_HOST), with commas between (all)
  --only N       only the fault with that number, which each line of the report begins with; may be repeated
  --list         print the faults as patches and try none; some of them are not counted when they are tried

Faults that do not compile or change nothing are not counted. A warning of the compiler notices a fault, the lints do not.
The status is 0 when at least 80 % were noticed, 1 when not, 2 when it could not be tried.
The copy and its build stay in $cache, for the next time.
USAGE
}

die() {
    printf 'mutate.sh: %s\n' "$1" >&2
    exit 2
}

# a_number OPTION VALUE
a_number() {
    [[ ${2:-} =~ ^[0-9]{1,9}$ ]] || die "$1 needs a number"
}

while (($#)); do
    case $1 in
    --seed)
        a_number "$@"
        seed=$2
        shift
        ;;
    --count)
        a_number "$@"
        ((10#$2 > 0)) || die "--count needs a number above 0"
        count=$2
        shift
        ;;
    --steps)
        [[ ${2:-} =~ ^(unit|scripts|e2e)(,(unit|scripts|e2e))*$ ]] || die "--steps needs some of unit, scripts and e2e, with commas between"
        steps=$2
        shift
        ;;
    --only)
        a_number "$@"
        more+=(--only "$2")
        shift
        ;;
    --list) more+=(--list) ;;
    -h | --help)
        usage
        exit 0
        ;;
    *) die "unknown option $1; see tests/mutate.sh --help" ;;
    esac
    shift
done

for tool in python3 git; do
    command -v "$tool" >/dev/null || die "$tool is missing: install it"
done
if [[ " ${more[*]-} " != *' --list '* ]]; then
    ((EUID == 0)) || die "needs root: a program with a fault runs only behind walls that root alone can make"
    for tool in gcc make autoreconf addr2line objdump unshare; do
        command -v "$tool" >/dev/null || die "$tool is missing: tests/run.sh installs what a build needs"
    done
    [[ $steps != *e2e* || ${DOCKER_HOST:-} ]] || die "the end-to-end core needs an engine: set DOCKER_HOST, or leave it out with --steps unit,scripts"
fi
mkdir -p "$cache" || die "$cache cannot be made"
exec python3 -u "$top/tests/mutate/run.py" --cache "$cache" --seed "$seed" --count "$count" --steps "$steps" "${more[@]}"
