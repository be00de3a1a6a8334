#!/usr/bin/env bash
# The functions of start.sh, one by one, in a folder of their own; nothing is installed, started or built.
# Prints "ok"/"not ok" lines and "N passed, N failed, N skipped".
# shellcheck disable=SC2030,SC2031,SC2034,SC2154,SC2317 # functions run in subshells on purpose; variables are start.sh's
set -uo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset DOCKER_HOST SANDCGI_HTTPS_PORT SANDCGI_HTTP_PORT SANDBOX_ROOT SANDBOX_TIMEOUT_MAX MCP_API_TOKEN PUBLIC_BASE_URL
export SANDCGI_STATE_DIR=$work/state SANDCGI_ENV_FILE=$work/env
passed=0 failed=0 skipped=0

equal()
{
    if [[ $2 == "$3" ]]; then
        passed=$((passed + 1))
        printf 'ok - %s\n' "$1"
    else
        failed=$((failed + 1))
        printf 'not ok - %s\n#   got    %s\n#   wanted %s\n' "$1" "$2" "$3"
    fi
}

matches()
{
    if [[ $2 =~ $3 ]]; then
        equal "$1" same same
    else
        equal "$1" "$2" "(something like) $3"
    fi
}

# within COMMAND…: runs it in a shell that has start.sh's functions; prints what it prints, and its failure.
within()
{
    (
        # shellcheck source=/dev/null
        source "$top/start.sh"
        choose_places
        "$@"
    ) 2>&1
}

test_reading_env()
{
    cat >"$work/env" <<'END'
# comment
PLAIN=one
  SPACED=two  
export EXPORTED=three
DOUBLE="with blank"
SINGLE='x=y'
TWICE=old
TWICE=new
EMPTY=
HASH=a#b
PREFIX_PLAIN=no
LAST=end
END
    printf 'NOEOL=yes' >>"$work/env"
    local row
    for row in PLAIN=one SPACED=two EXPORTED=three "DOUBLE=with blank" SINGLE=x=y TWICE=new EMPTY= HASH=a#b LAST=end NOEOL=yes; do
        equal ".env: ${row%%=*}" "$(within env_value "${row%%=*}")" "${row#*=}"
    done
    within env_value NOT_THERE >/dev/null
    equal ".env: a key that is not there fails" $? 1
    equal "the environment wins" "$(PLAIN=other within setting PLAIN default)" other
    equal ".env wins over the default" "$(within setting PLAIN default)" one
    equal "an empty value is the default" "$(within setting EMPTY default)" default
    rm "$work/env"
}

test_times()
{
    local row
    for row in 30s=30 5m=300 2h=7200 1500ms=2 45=45 08s=8; do
        equal "time ${row%=*}" "$(within to_seconds "${row%=*}")" "${row#*=}"
    done
    for row in '' abc 5d -3s '1 s'; do
        within to_seconds "$row"
        equal "time '$row' is refused" $? 1
    done
}

test_writing_env()
{
    SANDCGI_HTTPS_PORT=9443 within write_env_file >/dev/null
    equal ".env is for its owner only" "$(stat -c %a "$work/env")" 600
    matches "FILE_SECRET is random" "$(within env_value FILE_SECRET)" '^[0-9a-f]{64}$'
    matches "so is MCP_API_TOKEN" "$(within env_value MCP_API_TOKEN)" '^[0-9a-f]{64}$'
    equal "they differ" "$([[ $(within env_value FILE_SECRET) != "$(within env_value MCP_API_TOKEN)" ]] && echo yes)" yes
    equal "the port of the first start is kept" "$(within env_value NGINX_HTTPS_PORT)" 9443
    equal "links lead there" "$(within env_value PUBLIC_BASE_URL)" https://localhost:9443
    local before
    before=$(sha256sum <"$work/env")
    within write_env_file >/dev/null
    equal ".env is never overwritten" "$(sha256sum <"$work/env")" "$before"
    matches "the example holds no usable secret" "$(grep ^FILE_SECRET "$top/.env.example")" change
}

show()
{
    derive_settings
    printf '%s\n' "${!1}"
}

test_deriving()
{
    within write_env_file >/dev/null
    equal "links follow the port" "$(SANDCGI_HTTPS_PORT=10443 within show PUBLIC_BASE_URL)" https://localhost:10443
    equal "but not when they lead elsewhere" "$(PUBLIC_BASE_URL=https://x.test within show PUBLIC_BASE_URL)" https://x.test
    equal "nginx waits longer than the longest run" "$(SANDBOX_TIMEOUT_MAX=10m within show read_timeout)" 720
    matches "a bad port" "$(SANDCGI_HTTP_PORT=80x within show http_port)" "must be a port number"
    matches "a port too high" "$(SANDCGI_HTTP_PORT=70000 within show http_port)" "must be a port number"
    matches "a bad time" "$(SANDBOX_TIMEOUT_MAX=long within show read_timeout)" "must be a time"
    sed 's/^MCP_API_TOKEN=.*/MCP_API_TOKEN=/' "$work/env" >"$work/env2"
    matches "no token" "$(SANDCGI_ENV_FILE=$work/env2 within show api_token)" "MCP_API_TOKEN is missing.*openssl rand"
    local environment
    environment=$(AWS_SECRET=x SANDBOX_CPUS=2 within server_environment | tr '\0' '\n')
    matches "the server gets its settings" "$environment" SANDBOX_CPUS=2
    equal "and nothing else of the caller's" "$(grep -c AWS <<<"$environment")" 0
}

test_places()
{
    matches "a path too long for sockets" "$(SANDCGI_STATE_DIR=/tmp/$(printf 'x%.0s' {1..100}) within make_places)" "too long for sockets"
    matches "a path with a blank" "$(SANDCGI_STATE_DIR="$work/a b" within make_places)" "must not contain"
    matches "a path with a quote" "$(SANDCGI_STATE_DIR="$work/a\"b" within make_places)" "must not contain"
    : >"$work/file"
    matches "a folder that cannot be made" "$(SANDCGI_STATE_DIR=$work/file/state within make_places)" "set SANDCGI_STATE_DIR"
    within make_places
    equal "the folders are there" "$(cd "$work/state" && echo log nginx run tls)" "$(cd "$work/state" && echo *)"
}

only_jq_missing()
{
    is_there() { [[ $2 != jq ]]; }
    missing_packages
}

ensure_without_apt()
{
    make_places
    is_there() { [[ $2 != jq ]]; }
    have() { [[ $1 != apt-get ]]; }
    ensure_packages
}

ensure_with_fake_apt()
{
    make_places
    is_there() { [[ $2 != jq && $2 != nginx ]]; }
    have() { return 0; }
    systemd_runs() { return 1; }
    sudo() { echo "sudo $*" >>"$work/apt"; }
    apt-get() { echo "apt-get $*" >>"$work/apt"; }
    env() { echo "env $*" >>"$work/apt"; }
    ensure_packages
}

test_packages()
{
    equal "only what is missing" "$(within only_jq_missing)" "jq "
    matches "no apt: says what to install" "$(within ensure_without_apt)" "install these.*: jq"
    within ensure_with_fake_apt >/dev/null
    matches "apt: installs just that" "$(cat "$work/apt")" "install -y --no-install-recommends nginx-light jq"
}

own_pid()
{
    printf '%s\n' "$1" >"$work/pid"
    pid_from "$work/pid" sleep "$2"
}

test_pids()
{
    sleep 60 &
    local pid=$!
    equal "a process of ours is found" "$(within own_pid "$pid" 60)" "$pid"
    equal "not one with another command line" "$(within own_pid "$pid" 61)" ""
    equal "not one of another name" "$(within own_pid $$ 60)" ""
    equal "not one that is gone" "$(within own_pid 4000000 60)" ""
    equal "nor nonsense" "$(within own_pid "1; x" 60)$(within own_pid 0 60)$(within own_pid -1 60)" ""
    kill "$pid"
}

tenants()
{
    api_token=$1
    sync_token
    "$project/nginx/token.sh" --file "$state/nginx/tokens.map" --no-reload list | awk '{ print $1 }' | xargs
}

test_tokens()
{
    local one two added
    one=$(within random_hex) two=$(within random_hex)
    within make_places
    equal "the token of .env is there" "$(within tenants "$one")" default
    "$top/nginx/token.sh" --file "$work/state/nginx/tokens.map" --no-reload add alice >/dev/null
    added=$("$top/nginx/token.sh" --file "$work/state/nginx/tokens.map" --no-reload add default)
    equal "further tokens stay" "$(within tenants "$one")" "default alice default"
    equal "a new one in .env replaces the old one only" "$(within tenants "$two")" "alice default default"
    equal "the old one is gone, the added one is not" \
        "$(grep -c "$one" "$work/state/nginx/tokens.map") $(grep -c "$added" "$work/state/nginx/tokens.map")" "0 1"
    matches "an impossible token" "$(within tenants 'x y')" "cannot be used"
}

complain()
{
    printf '%s\n' "$@" >"$work/log"
    last_complaint "$work/log"
}

test_complaints()
{
    equal "the last error is quoted" "$(within complain "info a" "sandcgi: bad thing" "info b")" "bad thing"
    equal "or the last line" "$(within complain "info a" "info b")" "info b"
}

engine_state()
{
    make_places
    write_env_file >/dev/null
    derive_settings
    engine_answers() { [[ $1 == "$answering" ]]; }
    find_engine() { [[ -n $found ]] && printf '%s' "$found"; }
    bring_up_docker() { echo installed; }
    check_engine_permission() { :; }
    ensure_engine
    printf '%s|%s|%s\n' "$engine" "${DOCKER_HOST:-}" "$(env_value DOCKER_HOST)"
}

test_engine()
{
    local answering='' found=''
    rm -f "$work/env"
    found=unix:///var/run/docker.sock
    equal "the default engine is not noted" "$(within engine_state | tail -n 1)" "unix:///var/run/docker.sock||"
    found=''
    equal "no engine: one is installed" "$(within engine_state | xargs)" "installed unix:///var/run/docker.sock||"
    matches "a named engine that does not answer" "$(DOCKER_HOST=tcp://x:1 within engine_state)" "does not answer; start it"
    found=unix:///run/podman/podman.sock
    equal "another engine is noted" "$(within engine_state | tail -n 1)" "$found|$found|$found"
    answering=$found found=''
    equal "and used again later" "$(within engine_state | tail -n 1)" "$answering|$answering|$answering"
    equal "it is noted once" "$(grep -c ^DOCKER_HOST "$work/env")" 1
    rm -f "$work/env"
}

# disk_state MOUNT-STATUS: ensure_disk with a mount that ends so; then what lies beside SANDBOX_ROOT.
disk_state()
{
    local status=$1
    SANDBOX_ROOT=$work/disk/root log_file=$work/disk.log
    mkdir -p "$SANDBOX_ROOT"
    : >"$log_file"
    mountpoint() { return 1; }
    mkfs.ext4() { :; }
    mount()
    {
        printf 'mount %s\n' "$*"
        return "$status"
    }
    fallocate() { [[ $2 == 1M ]] && command fallocate "$@"; }
    (ensure_disk -m 0700) || true
    printf '|%s|%s' "$(cd "$work/disk" && echo *)" "$(grep -c '^mount' "$log_file")"
    rm -f "$log_file"
}

test_disk()
{
    if ((EUID != 0)) || ! (fallocate -l 1M "$work/probe") 2>/dev/null; then
        skipped=$((skipped + 1))
        return
    fi
    equal "no file system unless it is asked for" "$(SANDCGI_DISK='' within disk_state 0)" "|root|0"
    matches "a size that is none" "$(SANDCGI_DISK=lots within disk_state 0)" "must be a size such as 20g"
    matches "a size that the disk has not" "$(SANDCGI_DISK=9g within disk_state 0)" "no room for the file.*\|root\|0"
    matches "a kernel without quotas" "$(SANDCGI_DISK=1m within disk_state 1)" "cannot mount ext4 with user quotas.*\|root\|1"
    touch "$work/disk/root/file"
    matches "files that it would hide" "$(SANDCGI_DISK=1m within disk_state 0)" "holds files.*\|root\|0"
    rm "$work/disk/root/file"
    matches "it is made" "$(SANDCGI_DISK=1m within disk_state 0)" "file system of 1m with user quotas.*\|root root.ext4\|1"
    equal "of blocks, not of holes" "$(($(stat -c %b "$work/disk/root.ext4") >= 2048))" 1
    equal "and mounted from then on" "$(SANDCGI_DISK='' within disk_state 0)" "|root root.ext4|1"
    matches "or nothing starts" "$(SANDCGI_DISK='' within disk_state 1)" "cannot be mounted"
}

test_options()
{
    matches "--help" "$("$top/start.sh" --help 2>&1)" "usage: ./start.sh"
    matches "an unknown option" "$("$top/start.sh" --nonsense 2>&1)" "unknown option.*--help"
    matches "two options" "$("$top/start.sh" --stop --status 2>&1)" "one option"
    matches "--stop when nothing runs" "$("$top/start.sh" --stop 2>&1)" "nothing of start.sh's is running"
    matches "--status before the first start" "$("$top/start.sh" --status 2>&1)" "never started here"
}

for name in options reading_env times writing_env deriving places packages pids tokens complaints engine disk; do
    "test_$name"
done
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
