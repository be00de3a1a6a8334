# shellcheck shell=bash
# Counts of all stages, and the lines around them.

: "${unsteady=}"

passed=0 failed=0 skipped=0
# What failed, with what it said, to be read again right above the counts.
failures=''
# Tests that passed at their second attempt, or failed twice.
again=''

die() {
    printf 'tests: %s\n' "$1" >&2
    exit 1
}

heading() {
    printf '\n== %s\n' "$1"
}

# count PASSED FAILED SKIPPED
count() {
    passed=$((passed + $1))
    failed=$((failed + $2))
    skipped=$((skipped + $3))
}

one_ok() {
    printf 'ok %s\n' "$1"
    count 1 0 0
}

one_failed() {
    printf 'FAILED %s\n' "$1"
    failures+="FAILED $1"$'\n'
    count 0 1 0
}

# Keeps what a log says of failures: each one's line and some lines after it.
keep_failures() {
    failures+=$(awk '/^(ok|skipped|PASS:|SKIP:)( |$)/ { left = 0 }
                     /^(\[ +(ERROR|FAILED) |not ok|FAIL|FAILED|FAIL:|ERROR|ERROR:|XPASS:) / { left = 10 }
                     left-- > 0 { print substr($0, 1, 300) }' "$1" | head -n 60 || true)$'\n'
}

one_skipped() {
    printf 'skipped %s: %s\n' "$1" "$2"
    count 0 0 1
}

# The last "N passed, N failed, N skipped" that a script printed; a script that ends badly without naming a failure is one.
# count_from FILE STATUS NAME
count_from() {
    local file=$1 status=$2 name=$3 line second
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$file" | tail -n 1 || true)
    ((status == 0)) || keep_failures "$file"
    second=$(grep '^needed a second attempt' "$file" || true)
    again+=${second:+$second$'\n'}
    if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        count "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
        if ((status != 0 && BASH_REMATCH[2] == 0)); then
            one_failed "$name ended with status $status"
        fi
    elif ((status == 77)); then
        one_skipped "$name" "it said that it cannot run here"
    elif ((status == 0)); then
        one_ok "$name"
    else
        one_failed "$name ended with status $status and no counts"
    fi
}

report_total() {
    if ((failed)); then
        heading "what failed, again"
        printf '%s' "$failures"
    fi
    [[ -z $again ]] || printf '\n%s' "$again"
    sed 's/^/needed a second attempt: /' "$unsteady"
    printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    ((failed == 0))
}
