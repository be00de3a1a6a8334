#!/usr/bin/env bash
# Calls that no C file may make, and words that say that something is unfinished. Comments and strings do not count as
# calls; the words count everywhere.
. "$(dirname "$0")/common.sh"

anywhere='strcpy strncpy strcat strncat stpcpy sprintf vsprintf strtok gets sscanf
    atoi atol atoll atof strtol strtoul strtoll strtoull strtod
    system popen alloca signal mktemp tmpnam tempnam rand srand random
    gmtime localtime asctime ctime FCGX_OpenSocket'
# Only common/base/mem.c allocates; it checks sizes and deals with running out.
allocators='malloc calloc realloc reallocarray strdup strndup asprintf vasprintf'

# Prints "file:line: text" of every line, with comments and the insides of strings blanked out.
code_lines() {
    awk '
        FNR == 1 { in_comment = 0 }
        {
            line = $0; out = ""
            while (line != "") {
                if (in_comment) {
                    end = index(line, "*/")
                    if (!end) break
                    line = substr(line, end + 2); in_comment = 0
                } else if (line ~ /^\/\*/) { in_comment = 1; line = substr(line, 3)
                } else if (line ~ /^\/\//) { break
                } else if (match(line, /^"([^"\\]|\\.)*"/)) { out = out "\"\""; line = substr(line, RLENGTH + 1)
                } else if (match(line, /^\047([^\047\\]|\\.)*\047/)) { out = out "0"; line = substr(line, RLENGTH + 1)
                } else { out = out substr(line, 1, 1); line = substr(line, 2) }
            }
            print FILENAME ":" FNR ": " out
        }' "$@"
}

# calls NAMES : an expression for a call of one of them.
calls() {
    local names
    names=$(tr -s ' \n' '|' <<< "$1")
    echo "[^A-Za-z0-9_.>](${names%|})[[:space:]]*\("
}

mapfile -t product < <(c_files common fcgi runners)
mapfile -t all < <(c_files common fcgi runners tests)

found=$(
    code_lines "${all[@]}" | grep -E "$(calls "$anywhere")" || true
    code_lines "${product[@]}" | grep -v -E '^(common/base/mem\.c|runners/)' |
        grep -E "$(calls "$allocators")" || true
    grep -nwE 'TODO|FIXME|XXX|HACK' "${all[@]}" || true
    # H-51: the engine's own copying out of a container races with the programs in it.
    grep -nE '"[^"]*/(archive|copy|export)\b' common/engine/*.c || true
)
verdict "$found" "these calls or words are not used here: see CONTRIBUTING.md, or the banned list in tests/lint/banned.sh"
