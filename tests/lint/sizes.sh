#!/usr/bin/env bash
# Functions of at most 80 lines and files of at most 500: what is longer is two things. Counts rely on the layout that
# format.sh checks: a function's braces stand in the first column.
. "$(dirname "$0")/common.sh"

mapfile -t files < <(c_files common fcgi runners)

found=$(awk '
    FNR == 1 { if (previous) file_end(); previous = FILENAME; start = 0 }
    function file_end() { if (lines > 500) print previous ":1: the file has " lines " lines" }
    { lines = FNR }
    /^{/ { start = FNR }
    /^}/ {
        if (start && FNR - start - 1 > 80)
            print FILENAME ":" start ": the function has " FNR - start - 1 " lines"
        start = 0
    }
    END { if (previous) file_end() }' "${files[@]}")
verdict "$found" "split it along what its parts are about"
