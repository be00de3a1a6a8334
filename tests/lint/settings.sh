#!/usr/bin/env bash
# The settings in fcgi/settings.md and sandcgi.conf(5) are those that the program prints from its own table, and a line of
# .env.example that is commented out shows the default.
. "$(dirname "$0")/common.sh"

program=${builddir:-$top/build}/sandcgi
if [ ! -x "$program" ]; then
    echo "skipped: $program is not built"
    exit 77
fi

# settings_of FILE : what is between its markers.
settings_of() {
    sed -n '/settings: made by/,/\/settings/{/settings: made by/d;/\/settings/d;p}' "$1"
}

# Every setting with its default, as NAME=VALUE: the program's, and those of nginx/setup.
defaults() {
    # shellcheck disable=SC2016 # backquotes of Markdown
    "$program" settings | sed -nE 's/^\| `([A-Z_]+)` \| (`([^`]*)`|\([a-z ]+\)) \|.*/\1=\3/p'
    grep -rhoE '\$\(setting (NGINX|RUNNER)_[A-Z_]+ [^)]*' nginx/setup | sed -E "s/.*setting ([A-Z_]+) ('(.*)'|\"\\$.*|(.*))/\1=\3\4/"
}

found=$(
    comm -23 <(sed -n 's/^#\([A-Z_]*=.*\)/\1/p' .env.example | sort) <(defaults | sort -u) |
        sed 's/.*/.env.example: "#&" is not the default/'
    diff <(settings_of fcgi/settings.md) <("$program" settings) || true
    diff <(settings_of fcgi/sandcgi.conf.5) <("$program" settings --man) || true
)
verdict "$found" "correct .env.example, or call \"make settings-docs\" in the build folder: it puts the settings into fcgi/settings.md and fcgi/sandcgi.conf.5"
