# shellcheck shell=bash
# What the lint scripts share. They judge the files below $srcdir (default: this checkout), say what is wrong as
# "file:line: reason", and exit 0 (good), 1 (not) or 77 (a tool is missing).
set -euo pipefail

top=${srcdir:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
cd "$top"

# c_files FOLDER... : every C file and header below those of the folders that exist.
c_files() {
    local folder
    for folder in "$@"; do
        if [ -d "$folder" ]; then
            find "$folder" -name '*.[ch]' -type f
        fi
    done | LC_ALL=C sort
}

# need TOOL PACKAGE : skips the check when the tool is not there.
need() {
    if ! command -v "$1" > /dev/null; then
        echo "skipped: $1 is missing; install $2 to run this check"
        exit 77
    fi
}

# verdict LINES ADVICE : prints what was found and ends the script.
verdict() {
    if [ -z "$1" ]; then
        exit 0
    fi
    printf '%s\n' "$1"
    echo "$2"
    exit 1
}
