#!/usr/bin/env bash
# Every case of hostile.md has a test that names it, unless it is said to be absent or accepted. What the security model and the
# shares name as their tests is there.
. "$(dirname "$0")/common.sh"

found=$(
    for number in $(seq -w 1 77); do
        row=$(grep -E "^\| H-$number \|" tests/hostile.md) || echo "tests/hostile.md: no row H-$number"
        if ! grep -qE '\| (Absent|Accepted): ' <<< "$row"; then
            grep -rqE "H-$number\b" tests --include='*.py' --include='*.c' --include=banned.sh || echo "H-$number: no test names it"
        fi
    done
    # In parentheses: H-nn, `test_x.py`, `test_x.c` or the name of a unit test.
    # shellcheck disable=SC2016 # backquotes of Markdown
    cat fcgi/security.md fcgi/limits.md | tr '\n' ' ' | grep -oE '\(([^()]*[ ,;])?(H-|`)[^()]*\)' |
        grep -oE 'H-[0-9]+|`[a-z_/]+\.(py|c)`|`[a-z]+(_[a-z]+){3,}`' | sort -u | while read -r name; do
        name=${name//\`/}
        case $name in
        H-*) grep -qE "^\| $name \|" tests/hostile.md ;;
        *.py | *.c) [[ -n $(find . -path "*/${name#tests/}" -path "./tests/*") ]] ;;
        *) grep -rqE "^static void $name\(" tests/unit ;;
        esac || echo "fcgi/security.md, fcgi/limits.md: no test $name"
    done
)
verdict "$found" "name the case in the sentence of its test"
