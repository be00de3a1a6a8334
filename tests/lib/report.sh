# shellcheck shell=bash
# What the shell parts of the tests say.

die() {
    printf 'tests: %s\n' "$1" >&2
    exit 1
}
