#!/usr/bin/env bash
# A Docker Engine of the tests' own: own data, own socket, own bridge, so that it disturbs no other.
# Sourced; as a program: see the end (the crash tests kill the engine and start it again).

ENGINE_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly ENGINE_TOP
readonly ENGINE_BASE=debian:trixie-slim

readonly ENGINE_NAME=sandcgi-${SANDCGI_TEST_ENGINE_NAME:-tests} # at most 15 characters: it names the bridge, too
readonly ENGINE_DATA=/var/lib/$ENGINE_NAME
readonly ENGINE_RUN=/run/$ENGINE_NAME
readonly ENGINE_SOCKET=$ENGINE_RUN/docker.sock
readonly ENGINE_BRIDGE=$ENGINE_NAME
# Of its bridge and of the networks that servers under test have it make.
readonly ENGINE_RANGE=10.213.0.0/16

engine_root() {
    if ((EUID == 0)); then
        "$@"
    else
        sudo -n "$@"
    fi
}

# engine_answers HOST
engine_answers() {
    case $1 in
    unix://*) curl -fsS -m 5 --unix-socket "${1#unix://}" http://engine/_ping >/dev/null 2>&1 ;;
    tcp://*)
        if [[ ${DOCKER_TLS_VERIFY:-} ]]; then
            curl -fsS -m 5 --cacert "$DOCKER_CERT_PATH/ca.pem" --cert "$DOCKER_CERT_PATH/cert.pem" \
                --key "$DOCKER_CERT_PATH/key.pem" "https://${1#tcp://}/_ping" >/dev/null 2>&1
        else
            curl -fsS -m 5 "http://${1#tcp://}/_ping" >/dev/null 2>&1
        fi
        ;;
    *) false ;;
    esac
}

# A /24 that no route of this machine touches.
engine_free_subnet() {
    local n
    for n in $(seq 87 127); do
        if [[ -z $(ip -4 route show root "10.213.$n.0/24" 2>/dev/null) ]]; then
            echo "10.213.$n"
            return
        fi
    done
    return 1
}

# Its containers reach the outside, whatever policy another engine has given to FORWARD; no other rule is touched.
engine_rules() {
    local action=$1 end
    engine_root iptables -w 10 -t nat "$action" POSTROUTING -s "$ENGINE_RANGE" ! -d "$ENGINE_RANGE" -j MASQUERADE
    for end in -s -d; do
        engine_root iptables -w 10 "$action" FORWARD "$end" "$ENGINE_RANGE" -j ACCEPT
    done
}

engine_has_bridge() {
    ip link show dev "$ENGINE_BRIDGE" >/dev/null 2>&1
}

engine_bridge_up() {
    local net
    if engine_has_bridge; then
        return
    fi
    net=$(engine_free_subnet) || return 1
    engine_root ip link add "$ENGINE_BRIDGE" type bridge
    engine_root ip addr add "$net.1/24" dev "$ENGINE_BRIDGE"
    engine_root ip link set "$ENGINE_BRIDGE" up
    engine_rules -I # in front of another engine's
}

engine_bridge_down() {
    engine_has_bridge || return 0
    engine_rules -D 2>/dev/null || true
    engine_root ip link del "$ENGINE_BRIDGE" || true
}

engine_pid() {
    local pid
    pid=$(cat "$ENGINE_RUN/docker.pid" 2>/dev/null) || return 1
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) == dockerd ]] || return 1
    echo "$pid"
}

# Gone, or dead and not yet taken note of by its parent.
engine_wait_gone() {
    local tries=200
    while grep -qs '^State:[[:space:]]*[^ZX]' /proc/"$1"/task/*/status; do
        ((tries-- > 0)) || return 1
        sleep 0.1
    done
}

# The containerd of a dockerd that was killed: another dockerd would take it, or whatever has its number by now, for
# one to talk to, and wait for it without end.
engine_clear_containerd() {
    local file=$ENGINE_RUN/exec/containerd/containerd.pid pid
    pid=$(engine_root cat "$file" 2>/dev/null) || return 0
    if [[ $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") == containerd\ *"$ENGINE_RUN/"* ]]; then
        engine_root kill -9 "$pid" || true
        engine_wait_gone "$pid" || return 1
    fi
    engine_root rm -f "$file"
}

# The networks of an engine that has ended, and their bridges, each of which would keep one of the machine's address ranges.
# The engine would also give its own bridge last time's address again.
engine_forget_networks() {
    local file=$ENGINE_DATA/data/network/files/local-kv.db bridge
    while read -r bridge; do
        engine_root ip link del "$bridge" 2>/dev/null || true
    done < <(engine_root grep -aoE 'sg(pub|lan)-[0-9a-f]{8}' "$file" 2>/dev/null | sort -u)
    engine_root rm -f "$file"
}

engine_launch() {
    engine_root mkdir -p "$ENGINE_RUN" "$ENGINE_DATA"
    engine_clear_containerd
    engine_root rm -f "$ENGINE_RUN/docker.pid" "$ENGINE_SOCKET"
    engine_forget_networks
    # shellcheck disable=SC2016 # the inner shell expands them
    engine_root setsid --fork bash -c 'exec dockerd "$@" >>"$0" 2>&1 </dev/null 8>&-' "$ENGINE_DATA/dockerd.log" \
        --data-root "$ENGINE_DATA/data" --exec-root "$ENGINE_RUN/exec" --pidfile "$ENGINE_RUN/docker.pid" \
        -H "unix://$ENGINE_SOCKET" --bridge "$ENGINE_BRIDGE" --iptables=false --ip6tables=false --userland-proxy=false \
        --default-address-pool base=10.213.128.0/17,size=24 \
        --containerd-namespace "$ENGINE_NAME" --containerd-plugins-namespace "plugins.$ENGINE_NAME"
}

engine_wait_answer() {
    local tries=300
    until engine_answers "unix://$ENGINE_SOCKET"; do
        ((tries-- > 0)) || return 1
        sleep 0.1
    done
}

engine_end() {
    local pid
    if pid=$(engine_pid); then
        engine_root kill "$pid" || true
        engine_wait_gone "$pid" || engine_root kill -9 "$pid" || true
    fi
}

# Starts the engine unless it runs, with a second try. Says on stderr what to do when it cannot.
engine_start() {
    if engine_pid >/dev/null && engine_answers "unix://$ENGINE_SOCKET"; then
        return
    fi
    command -v dockerd >/dev/null || {
        echo "dockerd is missing: apt-get install docker.io, or set DOCKER_HOST" >&2
        return 1
    }
    engine_root true 2>/dev/null || {
        echo "an engine of the tests' own needs root: run as root, allow sudo, or set DOCKER_HOST" >&2
        return 1
    }
    engine_bridge_up
    engine_launch
    if ! engine_wait_answer; then
        engine_end
        engine_launch
        engine_wait_answer || {
            echo "dockerd did not answer within 30 s, twice: $(engine_root tail -n 1 "$ENGINE_DATA/dockerd.log"); see $ENGINE_DATA/dockerd.log" >&2
            return 1
        }
    fi
    ((EUID == 0)) || engine_root chown "$EUID" "$ENGINE_SOCKET"
}

# An engine that was killed has left mounts that its successor knows nothing of.
engine_unmount() {
    local where
    while read -r where; do
        engine_root umount --lazy "$where" || true
    done < <(awk -v data="$ENGINE_DATA/" -v run="$ENGINE_RUN/" 'index($5, data) == 1 || index($5, run) == 1 { print $5 }' /proc/self/mountinfo | tac)
}

# Only what engine_start started: by its pid file.
engine_stop() {
    engine_end
    engine_forget_networks
    engine_bridge_down
    engine_unmount
}

# An ended run's engine.
engine_remove_left() {
    engine_pid >/dev/null || engine_has_bridge || return 0
    echo "left by a run of the tests that was killed, and removed: its engine"
    engine_end
    engine_forget_networks
    engine_bridge_down
}

# Also of an ended run: the engine's data outlives it.
engine_remove_containers() {
    local id ids
    ids=$(docker -H "unix://$ENGINE_SOCKET" ps -aq) || return 0
    for id in $ids; do
        docker -H "unix://$ENGINE_SOCKET" rm -fv "$id" >/dev/null
    done
}

# Our own engine, without what an ended run left in it: for who holds the lock.
engine_take() {
    engine_remove_left
    engine_start || return 1
    engine_remove_containers
}

# An engine that answers, our own when need be; prints NAME=value lines for those that use it. SANDCGI_TEST_ENGINE tells the
# tests that kill it whose it is. Who calls this holds the lock of run.py.
engine_ready() {
    if [[ ${DOCKER_HOST:-} ]] && engine_answers "$DOCKER_HOST"; then
        echo SANDCGI_TEST_ENGINE=theirs
        return
    fi
    [[ ! ${DOCKER_HOST:-} ]] || echo "no engine answers at DOCKER_HOST=$DOCKER_HOST"
    engine_take || return 77
    export DOCKER_HOST=unix://$ENGINE_SOCKET
    unset DOCKER_TLS_VERIFY DOCKER_CERT_PATH
    printf '%s\n' SANDCGI_TEST_ENGINE=ours "DOCKER_HOST=$DOCKER_HOST"
}

# engine_label HOST IMAGE: what the image is made of.
engine_label() {
    docker -H "$1" image inspect --format '{{ index .Config.Labels "sandbox.build" }}' "$2" 2>/dev/null
}

# Engines that start.sh may have filled, but for the one of DOCKER_HOST.
engine_others() {
    local host
    for host in unix:///var/run/docker.sock "$(sed -n 's/^DOCKER_HOST=//p' "$ENGINE_TOP/.env" 2>/dev/null | tail -n 1)"; do
        if [[ $host == unix://* && $host != "$DOCKER_HOST" ]] && engine_answers "$host"; then
            echo "$host"
        fi
    done
}

# engine_borrow HOST FINGERPRINTS: copies from there what would be built otherwise.
engine_borrow() {
    local host=$1 runner build image images=()
    while read -r runner build; do
        image=sandcgi-runner-$runner:latest
        if [[ $(engine_label "$DOCKER_HOST" "$image") != "$build" && $(engine_label "$host" "$image") == "$build" ]]; then
            images+=("$image")
        fi
    done <<<"$2"
    if ! docker image inspect "$ENGINE_BASE" >/dev/null 2>&1 && docker -H "$host" image inspect "$ENGINE_BASE" >/dev/null 2>&1; then
        images+=("$ENGINE_BASE")
    fi
    ((${#images[@]})) || return 0
    docker -H "$host" save "${images[@]}" | docker load >/dev/null || return 0 # they are built
    echo "  ${images[*]}: copied from $host"
}

# The runner images in the engine of DOCKER_HOST: copied from another engine of this machine, else built.
engine_images() {
    local host fingerprints
    if [[ ${DOCKER_HOST:-} ]] && command -v docker >/dev/null; then
        fingerprints=$("$ENGINE_TOP/runners/build.sh" --fingerprint) || return 1
        for host in $(engine_others); do
            engine_borrow "$host" "$fingerprints"
        done
    fi
    "$ENGINE_TOP/runners/build.sh"
}

# An image with some extras, for e2e/test_extras.py; its name is on no server's list but that test's.
engine_extras() {
    RUNNER_EXTRAS="media php r" "$ENGINE_TOP/runners/build.sh" --tag sandcgi-test-extras:latest workbench
}

# engine_with COMMAND…: with our engine, which has the base image of the one of DOCKER_HOST, and ends with the command.
engine_with() {
    local theirs=$DOCKER_HOST
    trap engine_stop EXIT
    trap 'exit 130' INT TERM
    engine_take || exit 77
    export DOCKER_HOST=unix://$ENGINE_SOCKET SANDCGI_TEST_ENGINE=theirs
    if ! docker image inspect "$ENGINE_BASE" >/dev/null 2>&1; then
        docker -H "$theirs" save "$ENGINE_BASE" | docker load >/dev/null
    fi
    "$@"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    set -euo pipefail
    case ${1:-} in
    answers) engine_answers "${2:?}" ;;
    take) engine_take ;;
    start) engine_start ;;
    images) engine_images ;;
    stop) engine_stop ;;
    with) engine_with "${@:2}" ;;
    *)
        echo "usage: engine.sh answers HOST | take | start | images | stop | with COMMAND…" >&2
        exit 2
        ;;
    esac
fi
