#!/usr/bin/env bash
# The settings in fcgi/README.md and sandcgi.conf(5) are those that the program prints from its own table.
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

found=$(
    diff <(settings_of fcgi/README.md) <("$program" settings) || true
    diff <(settings_of fcgi/sandcgi.conf.5) <("$program" settings --man) || true
)
verdict "$found" "call \"make settings-docs\" in the build folder: it puts the settings into fcgi/README.md and fcgi/sandcgi.conf.5"
