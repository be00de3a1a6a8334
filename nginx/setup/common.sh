# shellcheck shell=bash disable=SC2034,SC2154 # the files of this folder share variables
# Talking to the user, and running long steps. Sourced by start.sh and setup-nginx.sh; expects $log_file once a step runs.

say()
{
    printf '%s\n' "$*"
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

# step TITLE COMMAND…: runs it with its output in the log; shows progress and the time it took. Returns its status.
step()
{
    local title=$1 began status=0 pid beats=0
    shift
    began=$(now_ms)
    printf '  %-44s ' "$title"
    printf '\n== %s\n' "$title" >>"$log_file"
    "$@" >>"$log_file" 2>&1 </dev/null &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.1
        beats=$((beats + 1))
        ((beats % 20)) || printf '.'
    done
    wait "$pid" || status=$?
    if ((status == 0)); then
        printf ' %s\n' "$(seconds_since "$began")"
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

# write_file MODE PATH <text: atomically, with its final mode.
write_file()
{
    local new
    new=$(mktemp "$2.XXXXXX") || die "cannot write into $(dirname "$2"); check its permissions and the disk"
    if ! { cat >"$new" && chmod "$1" "$new" && mv -f "$new" "$2"; }; then
        rm -f "$new"
        die "cannot write $2; check its permissions and the disk"
    fi
}

systemd_runs()
{
    [[ -d /run/systemd/system ]]
}
