# shellcheck shell=bash disable=SC2034,SC2154 # the files of this folder share variables
# Finding a container engine, or installing one; the runner images.

readonly default_engine=unix:///var/run/docker.sock

# engine_answers URL
engine_answers()
{
    local url=$1 options=(-sf -o /dev/null --max-time 5) certs
    case $url in
    unix://*) curl "${options[@]}" --unix-socket "${url#unix://}" http://localhost/_ping ;;
    tcp://*)
        if [[ $(setting DOCKER_TLS_VERIFY '') =~ ^(1|true|yes|on)$ ]]; then
            certs=$(setting DOCKER_CERT_PATH "$HOME/.docker")
            curl "${options[@]}" --cacert "$certs/ca.pem" --cert "$certs/cert.pem" --key "$certs/key.pem" \
                "https://${url#tcp://}/_ping"
        else
            curl "${options[@]}" "http://${url#tcp://}/_ping"
        fi
        ;;
    *) return 1 ;;
    esac
}

# Prints the URL of the first engine that answers at a usual place.
find_engine()
{
    local url
    for url in "$default_engine" "unix://${XDG_RUNTIME_DIR:-/nowhere}/podman/podman.sock" unix:///run/podman/podman.sock; do
        if [[ -S ${url#unix://} ]] && engine_answers "$url"; then
            printf '%s' "$url"
            return
        fi
    done
    return 1
}

# A Docker socket without permission is reported, not taken for a missing engine.
check_engine_permission()
{
    local socket=${default_engine#unix://}
    if [[ -S $socket && ! -w $socket ]]; then
        die "Docker is here but you may not use it; do: sudo usermod -aG docker $(id -un), log in again, and call start.sh again"
    fi
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
        engine_answers "$named" ||
            die "the engine at DOCKER_HOST=$named does not answer; start it, or take DOCKER_HOST out of $env_file and the environment"
        engine=$named
    elif ! engine=$(find_engine); then
        check_engine_permission
        bring_up_docker
        engine=$default_engine
    fi
    if [[ $engine != "$default_engine" ]]; then
        export DOCKER_HOST=$engine
        if ! env_value DOCKER_HOST >/dev/null; then
            [[ -z $(tail -c 1 "$env_file") ]] || printf '\n' >>"$env_file"
            printf 'DOCKER_HOST=%s\n' "$engine" >>"$env_file"
            say "  noted the engine in $env_file: DOCKER_HOST=$engine"
        fi
    fi
}

engine_is_rootless()
{
    curl -sf --max-time 5 --unix-socket "${engine#unix://}" http://localhost/info | jq -e '.SecurityOptions[]? | select(test("rootless"))' >/dev/null 2>&1
}

# The firewall rules of SANDBOX_NETWORK. The server tests them itself, and refuses a network without them.
ensure_network()
{
    local rules=$project/nginx/setup/network.sh dns
    [[ $(setting SANDBOX_NETWORK public) != none && $engine == unix://* ]] || return 0
    if engine_is_rootless; then
        say "  the engine is rootless: SANDBOX_NETWORK=public cannot be granted there (fcgi/README.md, Network)"
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

run_image_builder()
{
    "$project/runners/build.sh" 2>&1 | tee -a "$log_file"
}

# mmdebstrap is needed only where the base image can be neither found nor pulled, which the builder finds out.
ensure_images()
{
    ensure_engine_client
    printf '\n== runner images\n' >>"$log_file"
    if run_image_builder; then
        return
    fi
    if ! have mmdebstrap && tail -n 5 "$log_file" | grep -q mmdebstrap; then
        install_packages mmdebstrap
        if run_image_builder; then
            return
        fi
    fi
    die "cannot build the runner images; see the lines above and $log_file"
}

# Prints the number of runner images; nothing if the engine does not answer.
count_images()
{
    [[ $engine == unix://* ]] || return 0
    curl -sfG --max-time 5 --unix-socket "${engine#unix://}" http://localhost/images/json \
        --data-urlencode 'filters={"label":["sandbox.runner=true"]}' | jq 'length' 2>/dev/null || true
}

dockerd_pid()
{
    pid_from "$dockerd_pid_file" dockerd "$dockerd_pid_file"
}

stop_own_dockerd()
{
    local pid
    pid=$(dockerd_pid) || return 0
    as_root kill "$pid"
    wait_gone 20 "$pid" || say "  dockerd (process $pid) takes long to stop; see $log_dir/dockerd.log"
    say "  stopped the Docker engine that start.sh had started"
}
