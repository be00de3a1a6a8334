#!/usr/bin/env bash
# The layout of every C file is what clang-format 14 makes of it.
. "$(dirname "$0")/common.sh"

formatter=
for candidate in clang-format-14 clang-format; do
    if command -v "$candidate" > /dev/null && "$candidate" --version | grep -q 'version 14\.'; then
        formatter=$candidate
        break
    fi
done
if [ -z "$formatter" ]; then
    need clang-format-14 clang-format-14
fi

mapfile -t files < <(c_files common fcgi runners tests)
found=$("$formatter" --style=file --dry-run -Werror "${files[@]}" 2>&1 | grep 'error:' || true)
verdict "$found" "run: make format"
