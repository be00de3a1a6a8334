# shellcheck shell=bash disable=SC2034,SC2154 # the files of this folder share variables
# Finding a container engine, or installing one; the runner images.

readonly default_engine=unix:///var/run/docker.sock

# engine_get URL PATH [CURL OPTIONS…]
engine_get()
{
    local url=$1 path=$2 options=(-sf --max-time 5 "${@:3}") certs
    case $url in
    unix://*) curl "${options[@]}" --unix-socket "${url#unix://}" "http://localhost$path" ;;
    tcp://*)
        if [[ $(setting DOCKER_TLS_VERIFY '') =~ ^(1|true|yes|on)$ ]]; then
            certs=$(setting DOCKER_CERT_PATH "$HOME/.docker")
            curl "${options[@]}" --cacert "$certs/ca.pem" --cert "$certs/cert.pem" --key "$certs/key.pem" \
                "https://${url#tcp://}$path"
        else
            curl "${options[@]}" "http://${url#tcp://}$path"
        fi
        ;;
    *) return 1 ;;
    esac
}

# engine_answers URL
engine_answers()
{
    engine_get "$1" /_ping -o /dev/null
}

# The socket of the user's own Podman.
podman_socket()
{
    printf '%s/podman/podman.sock' "${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
}

# Prints the URL of the first engine that answers at a usual place.
find_engine()
{
    local url
    for url in "$default_engine" "unix://$(podman_socket)" unix:///run/podman/podman.sock; do
        if [[ -S ${url#unix://} ]] && engine_answers "$url"; then
            printf '%s' "$url"
            return
        fi
    done
    return 1
}

is_ordinary_user()
{
    ((EUID != 0))
}

docker_is_closed()
{
    local socket=${default_engine#unix://}
    [[ -S $socket && ! -w $socket ]]
}

# Of an ordinary user without Podman: a Docker socket without permission is no missing engine.
check_engine_permission()
{
    is_ordinary_user || return 0
    if docker_is_closed; then
        die "Docker is here but you may not use it. Install Podman, which needs no rights of root (sudo apt-get install podman uidmap)." \
            "Or join the group docker, which makes you root on this machine (sudo usermod -aG docker $(id -un)), and log in again. Then call start.sh again"
    fi
    if ! have sudo; then
        die "there is no container engine, and you can install none: ask for the packages podman and uidmap, and call start.sh again"
    fi
}

has_podman()
{
    is_ordinary_user && have podman
}

has_ids()
{
    grep -qsE "^($(id -un)|$(id -u)):" /etc/subuid
}

# Sets engine to the ordinary user's Podman: that of systemd, else one of start.sh's own.
start_podman()
{
    have newuidmap || die "Podman needs newuidmap to run without rights of root; install it and call start.sh again: sudo apt-get install uidmap"
    has_ids ||
        die "Podman without rights of root needs a range of ids for $(id -un); give it one and call start.sh again:" \
            "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un)"
    engine=unix://$(podman_socket)
    if systemctl --user start podman.socket >>"$log_file" 2>&1 && engine_answers "$engine"; then
        return
    fi
    engine=unix://$own_podman_socket
    start_own_podman
}

start_own_podman()
{
    local store=${XDG_DATA_HOME:-$HOME/.local/share}/containers driver=()
    # Without a choice of the user's, Podman of Debian 12 copies the whole image for each container.
    if [[ ! -e ${XDG_CONFIG_HOME:-$HOME/.config}/containers/storage.conf && ! -e /etc/containers/storage.conf && ! -d $store/storage/vfs-containers ]]; then
        driver=(--storage-driver overlay)
    fi
    rm -f "$own_podman_socket"
    # Podman of Debian 12 builds from the Dockerfile of the folder that its service runs in.
    setsid env -C / podman "${driver[@]}" system service --time=0 "unix://$own_podman_socket" >>"$log_dir/podman.log" 2>&1 </dev/null 9>&- &
    printf '%s\n' "$!" | write_file 0644 "$podman_pid_file"
    disown 2>>"$log_file" || true # it may have ended
    step "waiting for Podman" wait_until 20 podman_settles
    engine_answers "unix://$own_podman_socket" || die "Podman does not start: $(tail -n 1 "$log_dir/podman.log"); the log is $log_dir/podman.log"
}

# It answers, or has ended.
podman_settles()
{
    engine_answers "unix://$own_podman_socket" || ! podman_pid >/dev/null
}

start_dockerd()
{
    if systemd_runs; then
        as_root systemctl start docker.service >>"$log_file" 2>&1 || return 1
    else
        as_root setsid --fork dockerd --pidfile "$dockerd_pid_file" >>"$log_dir/dockerd.log" 2>&1 </dev/null 9>&-
    fi
}

docker_is_up()
{
    [[ -S ${default_engine#unix://} ]] && engine_answers "$default_engine"
}

bring_up_docker()
{
    have dockerd || install_packages docker.io iptables ca-certificates
    start_dockerd || die "Docker could not be started; see: systemctl status docker"
    if ! step "waiting for Docker" wait_until 60 docker_is_up; then
        check_engine_permission
        die "Docker does not answer; see $log_dir/dockerd.log or journalctl -u docker, or set DOCKER_HOST to an engine that does"
    fi
}

# Sets and exports DOCKER_HOST unless it is the default; an engine that is not the default is noted in .env for later calls.
ensure_engine()
{
    local named
    named=$(setting DOCKER_HOST '')
    if [[ -n $named && $named != "$default_engine" ]]; then
        [[ $named != "unix://$own_podman_socket" ]] || engine_answers "$named" || start_own_podman
        engine_answers "$named" ||
            die "the engine at DOCKER_HOST=$named does not answer; start it, or take DOCKER_HOST out of $env_file and the environment"
        engine=$named
    elif engine=$(find_engine); then
        :
    elif has_podman; then
        start_podman
    else
        check_engine_permission
        bring_up_docker
        engine=$default_engine
    fi
    if [[ $engine != "$default_engine" ]]; then
        export DOCKER_HOST=$engine
        if ! env_value DOCKER_HOST >/dev/null; then
            [[ -z $(tail -c 1 "$env_file") ]] || printf '\n' >>"$env_file"
            printf 'DOCKER_HOST=%s\n' "$engine" >>"$env_file"
            detail "  noted the engine in $env_file: DOCKER_HOST=$engine"
        fi
    fi
}

engine_is_rootless()
{
    engine_get "$engine" /info --max-time 20 | jq -e '.SecurityOptions[]? | select(test("rootless"))' >/dev/null 2>&1 ||
        engine_get "$engine" /v1.40/libpod/info --max-time 20 | jq -e '.host.security.rootless' >/dev/null 2>&1
}

limits_are_known()
{
    run_server status --json 2>>"$log_file" | jq -e '.limits | .hold or .lastError' >/dev/null
}

# A rootless engine may bound nothing. The server's test of that ends some seconds after its start, and doctor tells the result.
wait_for_limits()
{
    [[ $engine == unix://* && $(setting SANDBOX_LIMITS_CHECK warn) != trust ]] && engine_is_rootless || return 0
    wait_until 30 limits_are_known || true
}

# Of a rootless engine, unless the user has chosen.
choose_no_network()
{
    if [[ -n $(setting SANDBOX_NETWORK '') ]]; then
        say "  the engine is rootless: SANDBOX_NETWORK=public cannot be granted there (fcgi/security.md, Network)"
        return
    fi
    export SANDBOX_NETWORK=none
    note_settings start.sh SANDBOX_NETWORK
    say "  programs get no network, as the engine is rootless: SANDBOX_NETWORK=none in $env_file (fcgi/security.md, Network)"
}

# The firewall rules of SANDBOX_NETWORK. The server tests them itself, and refuses a network without them.
ensure_network()
{
    local rules=$project/nginx/setup/network.sh dns
    [[ $(setting SANDBOX_NETWORK public) != none && $engine == unix://* ]] || return 0
    if engine_is_rootless; then
        choose_no_network
    elif ((EUID != 0)) && ! { have sudo && sudo -n true 2>/dev/null; }; then
        say "  programs get a network only with firewall rules, once after each boot: sudo $rules install"
    else
        have nft || install_packages nftables
        IFS=', ' read -ra dns <<<"$(setting SANDBOX_NETWORK_DNS '')"
        as_root "$rules" install "${dns[@]}" >>"$log_file" 2>&1 || say "  programs get no network: the firewall rules could not be set; see $log_file"
    fi
}

# The images are built with a client program, which a remote engine may lack.
ensure_engine_client()
{
    have docker || have podman || have_installable docker-cli || install_packages docker.io
    have docker || have podman || install_packages docker-cli
}

have_installable()
{
    apt-cache show "$1" 2>/dev/null | grep -q "^Package: $1\$"
}

# build_images [LAYER]
build_images()
{
    # shellcheck disable=SC2094 # both append
    RUNNER_EXTRAS=$(setting RUNNER_EXTRAS '') "$project/runners/build.sh" "$@" 2>>"$log_file" | tee -a "$log_file"
}

# The same in a process group of its own, so that a signal to start.sh need not wait for a build, and ends it.
run_image_builder()
{
    local status=0
    set -m
    build_images "$@" </dev/null &
    builder_group=$!
    set +m
    wait "$builder_group" || status=$?
    builder_group=
    return "$status"
}

end_image_builder()
{
    [[ -z ${builder_group:-} ]] || kill -TERM -- "-$builder_group" 2>/dev/null || true
}

# ensure_images [LAYER]: up to that one, or all. The builder finds out whether the base image can be neither found nor pulled:
# mmdebstrap is needed only then.
ensure_images()
{
    local status=0
    ensure_engine_client
    printf '\n== runner images\n' >>"$log_file"
    run_image_builder "$@" || status=$?
    if ((status == 3)); then
        install_packages mmdebstrap
        status=0
        run_image_builder "$@" || status=$?
    fi
    ((status == 0)) || die "the runner images could not be made: $(grep -o 'runners: .*' "$log_file" | tail -n 1 | cut -c10-); see $log_file"
}

list_images()
{
    engine_get "$engine" /images/json -G --data-urlencode 'filters={"label":["sandbox.runner=true"],"dangling":["false"]}'
}

# image_is_there LANGUAGE: one that runs it, new or old.
image_is_there()
{
    list_images | jq -e --arg language "$1" 'any(.[].Labels["sandbox.language"] // "" | split(" ")[]; . == $language)' >/dev/null 2>&1
}

# Prints the number of runner images; nothing if the engine does not answer.
count_images()
{
    list_images | jq 'length' 2>/dev/null || true
}

dockerd_pid()
{
    pid_from "$dockerd_pid_file" dockerd "$dockerd_pid_file"
}

podman_pid()
{
    pid_from "$podman_pid_file" podman "$own_podman_socket"
}

stop_own_podman()
{
    local pid
    pid=$(podman_pid) || return 0
    kill "$pid"
    wait_gone 20 "$pid" || say "  podman (process $pid) takes long to stop; see $log_dir/podman.log"
    rm -f "$podman_pid_file" "$own_podman_socket"
    say "  stopped the Podman service that start.sh had started"
}

stop_own_dockerd()
{
    local pid
    pid=$(dockerd_pid) || return 0
    as_root kill "$pid"
    wait_gone 20 "$pid" || say "  dockerd (process $pid) takes long to stop; see $log_dir/dockerd.log"
    say "  stopped the Docker engine that start.sh had started"
}
