#!/usr/bin/env bash
# Every case of hostile.md has a test that names it, unless it is said to be absent or accepted.
. "$(dirname "$0")/common.sh"

found=$(
    for number in $(seq -w 1 72); do
        row=$(grep -E "^\| H-$number \|" tests/hostile.md) || echo "tests/hostile.md: no row H-$number"
        if ! grep -qE '\| (Absent|Accepted): ' <<< "$row"; then
            grep -rqE "H-$number\b" tests --include='*.py' --include='*.c' --include=banned.sh || echo "H-$number: no test names it"
        fi
    done
)
verdict "$found" "name the case in the sentence of its test"
