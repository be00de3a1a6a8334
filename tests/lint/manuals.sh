#!/usr/bin/env bash
# The manual pages are clean for groff (all warnings) and, where they are installed, for man and mandoc.
. "$(dirname "$0")/common.sh"

need groff groff-base
program=${builddir:-$top/build}/sandcgi

found=$(
    for page in fcgi/*.[1-8]; do
        groff -man -Tutf8 -ww -z "$page" 2>&1 || true
        if command -v man > /dev/null; then
            LC_ALL=C.UTF-8 man --warnings -l "$page" 2>&1 > /dev/null || true
        fi
        if command -v mandoc > /dev/null; then
            mandoc -T lint -W warning "$page" || true
        fi
    done
    # Each command of the program has its paragraph, and each of its options is there.
    [ ! -x "$program" ] || "$program" help | sed -n 's/^  \([a-z-]*\) .*/\1/p' | while read -r name; do
        grep -qxF ".B ${name//-/\\-}" fcgi/sandcgi.1 || grep -qxF ".BI \"$name \" FILE" fcgi/sandcgi.1 || echo "fcgi/sandcgi.1: the command $name is missing"
        words=("$name")
        [ "$name" != setup ] || words+=(nginx)
        { "$program" "${words[@]}" --help < /dev/null | grep -oE -- '--[a-z][a-z-]*' || true; } | sort -u | while read -r option; do
            [ "$option" = --help ] || grep -qF -- "${option//-/\\-}" fcgi/sandcgi.1 || echo "fcgi/sandcgi.1: $option of $name is missing"
        done
    done
)
verdict "$found" "mend the page (the settings in sandcgi.conf.5 come from fcgi/settings.c)"
