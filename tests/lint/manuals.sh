#!/usr/bin/env bash
# The manual pages are clean for groff (all warnings) and, where they are installed, for man and mandoc.
. "$(dirname "$0")/common.sh"

need groff groff-base
program=${builddir:-$top/build}/sandcgi
made=${builddir:-$top/build}/fcgi/sandcgi.conf.5
if [ ! -f "$made" ]; then
    echo "skipped: $made is not built"
    exit 77
fi
pages=(fcgi/sandcgi.1 "$made")

found=$(
    for page in "${pages[@]}"; do
        groff -man -Tutf8 -ww -z "$page" 2>&1 || true
        if command -v man > /dev/null; then
            LC_ALL=C.UTF-8 man --warnings -l "$page" 2>&1 > /dev/null || true
        fi
        if command -v mandoc > /dev/null; then
            mandoc -T lint -W warning "$page" || true
        fi
    done
    # Each setting of the table is in the page, each command of the program in sandcgi(1).
    # shellcheck disable=SC2016 # the backticks are Markdown's
    "$program" settings | sed -n 's/^| `\([A-Z_]*\)`.*/\1/p' | while read -r name; do
        grep -qxF ".B $name" "$made" || echo "$made: $name is missing"
    done
    "$program" help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' | while read -r name; do
        grep -qxF ".B ${name//-/\\-}" fcgi/sandcgi.1 || echo "fcgi/sandcgi.1: the command $name is missing"
    done
)
verdict "$found" "mend the page (or fcgi/settings.c, common/base/conf_print.c, of which sandcgi.conf.5 is made)"
