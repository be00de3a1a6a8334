# shellcheck shell=bash disable=SC2034,SC2154 # the files of this folder share variables
# Talking to the user, and running long steps. Sourced by start.sh and setup-nginx.sh; expects $project, and $log_file once a step runs.

# shellcheck source=service/write_file.sh
source "$project/service/write_file.sh"

say()
{
    printf '%s\n' "$*"
}

# A line for maintainers: shown with --verbose, else in the log.
detail()
{
    if [[ -n ${verbose:-} ]]; then say "$*"; else say "$*" >>"$log_file"; fi
}

# phase TITLE: the next of the parts of a start.
phase()
{
    phases_begun=$((${phases_begun:-0} + 1))
    printf '%d of 9  %s\n' "$phases_begun" "$1"
}

# Ends with one line: the error and its remedy. $we names the program, if it is not start.sh.
die()
{
    printf '\n%s: %s\n' "${we:-start.sh}" "$*" >&2
    exit 1
}

have()
{
    command -v "$1" >/dev/null 2>&1
}

# As root, with sudo if need be.
as_root()
{
    if ((EUID == 0)); then
        "$@"
    else
        sudo "$@"
    fi
}

now_ms()
{
    local t=${EPOCHREALTIME/[.,]/}
    printf '%s' "${t%???}"
}

seconds_since()
{
    local ms=$(($(now_ms) - $1))
    printf '%d.%d s' $((ms / 1000)) $((ms % 1000 / 100))
}

# step TITLE COMMAND…: runs it with its output in the log; shows progress and the time it took, of one that takes a second, fails, or
# with --verbose. Returns its status.
step()
{
    local title=$1 began status=0 pid beats=0 shown=${verbose:-}
    shift
    began=$(now_ms)
    [[ -z $shown ]] || printf '  %-44s ' "$title"
    printf '\n== %s\n' "$title" >>"$log_file"
    "$@" >>"$log_file" 2>&1 </dev/null &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.1
        beats=$((beats + 1))
        if [[ -z $shown ]] && ((beats == 10)); then
            printf '  %-44s ' "$title"
            shown=yes
        fi
        ((beats % 20)) || printf '.'
    done
    wait "$pid" || status=$?
    ((status == 0)) || [[ -n $shown ]] || printf '  %-44s ' "$title"
    if ((status == 0)); then
        [[ -z $shown ]] || printf ' %s\n' "$(seconds_since "$began")"
    else
        printf ' failed\n'
        tail -n 5 "$log_file" | sed 's/^/    | /'
    fi
    return "$status"
}

# wait_until SECONDS COMMAND…: tries until it succeeds.
wait_until()
{
    local tries=$(($1 * 10))
    shift
    while ! "$@"; do
        ((--tries > 0)) || return 1
        sleep 0.1
    done
}

# wait_gone SECONDS PID
wait_gone()
{
    local tries=$(($1 * 10))
    while [[ -d /proc/$2 ]] && ! grep -q '^State:.Z' "/proc/$2/status" 2>/dev/null; do
        ((--tries > 0)) || return 1
        sleep 0.1
    done
}

# pid_from FILE NAME WORD: prints the process id in FILE if a process of that name, with that word on its command line,
# still has it. Only such a process may be ended.
pid_from()
{
    local pid name
    pid=$(cat "$1" 2>/dev/null) || return 1
    [[ $pid =~ ^[1-9][0-9]*$ ]] || return 1
    name=$(cat "/proc/$pid/comm" 2>/dev/null) || return 1
    [[ $name == "$2" ]] && tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -- "$3" && printf '%s' "$pid"
}

random_hex()
{
    od -An -N32 -tx1 /dev/urandom | tr -d ' \n'
}

systemd_runs()
{
    [[ -d /run/systemd/system ]]
}
