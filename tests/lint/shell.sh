#!/usr/bin/env bash
# Shell scripts are clean for shellcheck.
. "$(dirname "$0")/common.sh"

need shellcheck shellcheck
mapfile -t scripts < <(
    find . -path ./.git -prune -o -path './build*' -prune -o -path ./autom4te.cache -prune -o \
        -name node_modules -prune -o -name '*.sh' -type f -print | LC_ALL=C sort
)
shellcheck --external-sources --source-path=SCRIPTDIR --severity=info "${scripts[@]}"
