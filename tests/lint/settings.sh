#!/usr/bin/env bash
# The table of settings in fcgi/README.md is what the program prints from its own table.
. "$(dirname "$0")/common.sh"

program=${builddir:-$top/build}/sandcgi
if [ ! -x "$program" ]; then
    echo "skipped: $program is not built"
    exit 77
fi

in_readme=$(sed -n '/^<!-- settings: /,/^<!-- \/settings -->/p' fcgi/README.md | grep '^|')
found=$(diff <(printf '%s\n' "$in_readme") <("$program" settings | grep '^|') || true)
verdict "$found" "put what \"sandcgi settings\" prints between the settings markers of fcgi/README.md"
