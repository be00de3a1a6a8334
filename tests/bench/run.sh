#!/usr/bin/env bash
# Measures what our own parts cost, against a server that ./start.sh has started (same folder, same SANDCGI_STATE_DIR and
# SANDCGI_ENV_FILE). Prints figures and goals, asserts nothing. See usage() below and README.md beside this file.
# shellcheck disable=SC2154 # variables come from nginx/setup/settings.sh
set -euo pipefail

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Called from within another clone that has been started: that one is measured.
if [[ -x start.sh && -f build/Makefile ]]; then
    project=$PWD
fi
for part in common settings services; do
    # shellcheck source=/dev/null
    source "$project/nginx/setup/$part.sh"
done

load_rounds=7 seconds=2 stream_rounds=5 streams=1000
work='' nginx_of_ours=''

usage()
{
    cat <<'END'
usage: tests/bench/run.sh [--load-rounds N] [--seconds N] [--stream-rounds N] [--streams N]

  --load-rounds N   rounds of tools/list against a static file (7) …
  --seconds N       … of this many seconds for each of its four parts (2)
  --stream-rounds N rounds of three calls with and without waiting streams (5); a round takes about half a minute …
  --streams N       … of this many streams (1000)

Needs a server that ./start.sh has started.
END
}

fail()
{
    printf 'bench: %s\n' "$1" >&2
    exit 1
}

take_options()
{
    while (($#)); do
        case $1 in
        --load-rounds | --seconds | --stream-rounds | --streams)
            [[ ${2:-} =~ ^[1-9][0-9]{0,3}$ ]] || fail "$1 needs a number from 1 to 9999; see --help"
            case $1 in
            --load-rounds) load_rounds=$2 ;;
            --seconds) seconds=$2 ;;
            --stream-rounds) stream_rounds=$2 ;;
            --streams) streams=$2 ;;
            esac
            shift 2
            ;;
        -h | --help)
            usage
            exit 0
            ;;
        *) fail "unknown option '$1'; see --help" ;;
        esac
    done
}

clean_up()
{
    if [[ -n $nginx_of_ours && -s $work/nginx.pid ]]; then
        kill -QUIT "$(<"$work/nginx.pid")" 2>/dev/null || true
        wait_gone 5 "$nginx_of_ours" || true
    fi
    [[ -z $work ]] || rm -rf "$work"
}

# A free port. If another process takes it before nginx does, nginx reports that.
free_port()
{
    local port
    for _ in {1..50}; do
        port=$((20000 + RANDOM % 20000))
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            printf '%d' "$port"
            return
        fi
    done
    fail "no free port found between 20000 and 40000; try again"
}

# The started server's own nginx configuration with three changes: another place to listen, no rate limits (a single client may
# not ask for thousands of lists a second otherwise), and one static file to compare with.
copy_nginx()
{
    local conf=$state/nginx static='location = /static.json { alias "'$work'/static.json"; default_type application/json; }'
    cp -p "$conf"/*.conf "$conf/tokens.map" "$work/"
    mkdir -p "$work/tmp"
    sed -i -E -e "s|$conf/([a-z]+\.conf)|$work/\1|g" -e "s|$conf/tokens\.map|$work/tokens.map|g" -e "s|$conf/tmp|$work/tmp|g" \
        -e "s|^pid .*|pid \"$work/nginx.pid\";|" -e "s|^error_log .*|error_log \"$work/error.log\" warn;|" \
        -e '/listen [^;]* ssl http2;/c listen unix:'"$work"'/https.sock ssl http2;' \
        -e '/^ *listen [^;]*:[0-9]+;/c listen '"$front"';' \
        -e 's|keepalive_timeout [^;]*;|keepalive_timeout 65s; keepalive_requests 100000000;|' \
        -e 's|rate=[0-9]+r/s|rate=1000000r/s|' -e 's|burst=[0-9]+|burst=1000000|' -e 's|(limit_conn [a-z_]+) [0-9]+;|\1 60000;|' \
        -e "s|^( *)location / \{ return 404; \}|\1$static\n&|" "$work"/*.conf
    : >"$work/static.json"
    chmod 0644 "$work/static.json"
}

start_nginx_copy()
{
    PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
    nginx -e "$work/error.log" -c "$work/nginx.conf" 2>"$work/complaint" </dev/null ||
        fail "nginx does not start with a copy of $state/nginx: $(tail -n 1 "$work/complaint")"
    wait_until 10 test -s "$work/nginx.pid" || fail "nginx did not start; is port ${front#*:} taken? Try again"
    nginx_of_ours=$(<"$work/nginx.pid")
}

bench()
{
    local environment
    mapfile -d '' -t environment < <(server_environment)
    env -i "${environment[@]}" BENCH_TOKEN="$api_token" "$project/build/tests/bench/bench" "$@" ||
        fail "measuring ($1) broke off; the lines above say why"
}

# holders MASTER SOCKET: process ids of the master's children that hold this listening socket.
holders()
{
    local inode child children
    inode=$(awk -v path="$2" '$NF == path { print $7; exit }' /proc/net/unix)
    [[ -n $inode ]] || return 0
    read -ra children <"/proc/$1/task/$1/children" || true
    for child in "${children[@]}"; do
        if [[ -n $(find "/proc/$child/fd" -lname "socket:\[$inode\]" -print -quit 2>/dev/null) ]]; then
            printf '%s\n' "$child"
        fi
    done
}

# Private memory of each worker and its proportional share of everything, in kB, sorted by the first.
memory_of_workers()
{
    local pid
    for pid in $(holders "$1" "$SANDCGI_LISTEN"); do
        awk '/^Private_(Clean|Dirty|Hugetlb):/ { kb += $2 } /^Pss:/ { pss = $2 } END { if (NR) print kb, pss }' \
            "/proc/$pid/smaps_rollup" 2>/dev/null || true
    done | sort -n
}

# print_memory WHEN MASTER
print_memory()
{
    memory_of_workers "$2" | awk -v when="$1" '{ kb[NR] = $1; pss += $2 }
        END {
            if (!NR) { print "  " when ": no worker could be looked at (another account, or not a Unix socket)"; exit }
            printf "  %-22s %d workers: median %.2f MB, largest %.2f MB; with their share of common pages %.2f MB   goal: <= 5 MB\n",
                when, NR, kb[int((NR + 1) / 2)] / 1024, kb[NR] / 1024, pss / NR / 1024
        }'
}

print_place()
{
    printf 'Machine: %s, %d processors, Linux %s; load before: %s\n' "$(uname -m)" "$(nproc)" "$(uname -r)" "$(cut -d' ' -f1-3 /proc/loadavg)"
    printf 'Engine:  %s\n\n' "$(docker version --format '{{.Server.Version}}' 2>/dev/null || printf 'unknown') at ${DOCKER_HOST:-its default place}"
}

main()
{
    local master front hub
    take_options "$@"
    choose_places
    derive_settings
    master=$(sandcgi_pid) || fail "no server is running for $env_file and $state; start it: ./start.sh"
    DOCKER_HOST=$(setting DOCKER_HOST '')
    if [[ -n $DOCKER_HOST ]]; then
        export DOCKER_HOST
    else
        unset DOCKER_HOST
    fi
    make -s -C "$project/build" tests/bench/bench >/dev/null || fail "building failed; see: make -C $project/build tests/bench/bench"
    trap clean_up EXIT
    work=$(mktemp -d "${TMPDIR:-/tmp}/sandcgi-bench.XXXXXX")
    chmod 0755 "$work"
    front=127.0.0.1:$(free_port)
    copy_nginx
    start_nginx_copy
    bench list "$front" >"$work/static.json"

    print_place
    printf 'Private memory of idle workers\n'
    print_memory 'before the measuring' "$master"
    printf '\n'
    bench load "$front" "$load_rounds" "$seconds"
    printf '\n'
    hub=$(holders "$master" "$SANDCGI_HUB")
    [[ -n $hub ]] || fail "no hub is running; is SANDCGI_HUB a socket's path?"
    bench streams "$front" "$stream_rounds" 1000 "$streams" "$hub"
    printf '\nPrivate memory of idle workers\n'
    print_memory 'after the measuring' "$master"
}

main "$@"
