#!/usr/bin/env bash
# Installs what is missing, builds, and runs sandcgi behind an nginx of its own. See usage() below.
# shellcheck disable=SC2154 # variables come from nginx/setup/settings.sh
set -euo pipefail

project=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for part in common settings packages build page engine site certificate services first-run; do
    # shellcheck source=/dev/null
    source "$project/nginx/setup/$part.sh"
done

usage()
{
    cat <<'END'
usage: ./start.sh [--foreground | --stop | --status | --help] [--verbose]

Without an option: installs what is missing (apt; sudo if you are not root), builds, finds or installs a container engine,
makes the runner images, a .env with random secrets and a certificate, starts nginx and sandcgi on loopback, and runs a
first program. On a new machine the server answers as soon as it can run bash; Python, the rest of the image and the page follow.
Called again it changes only what is out of date.

  --foreground   the same in the foreground: shows the logs; Ctrl-C stops everything
  --stop         stops what start.sh started (not an engine that was there before)
  --status       one line for each part; ends with 3 when something is not running
  --verbose      shows each step and process of a start

Environment (state folder and ports are remembered in the settings, where the ports have the same names):
  SANDCGI_STATE_DIR    sockets, logs, files of the conversations, certificate (root: /var/lib/sandcgi, else ./var)
  NGINX_HTTPS_PORT, NGINX_HTTP_PORT   ports (8443, 8080)
  SANDCGI_ENV_FILE     the settings (./.env)
  SANDCGI_DISK         size (20g) of a file system with disk quotas that is made for the files of the conversations, in a file
                       beside them; each later start mounts it (root only; before there are conversations)
END
}

# One start.sh at a time.
take_lock()
{
    exec 9>"$run_dir/start.lock"
    flock -n 9 || { say "  another start.sh is running; waiting for it" && flock 9; }
}

# When start.sh ends early: what it builds ends, what answers stays.
on_exit()
{
    end_image_builder
    [[ -z $answers_with ]] || printf 'start.sh: the server still answers at %s/mcp and runs %s. %s\n' "$(front_url)" "$answers_with" \
        "./start.sh makes what is missing; ./start.sh --stop stops the server." >&2
}

# What the server needs beside an image.
prepare_server()
{
    phase "the program"
    finish_build
    ensure_account
    ensure_sandbox_root
    check_settings
    sync_token
    write_file_key
}

# On a new machine: the image that is made fastest, the server, and then the rest.
bring_up_by_and_by()
{
    phase "an image that runs bash"
    ensure_images bash
    prepare_server
    phase "the server"
    take_earlier_page
    render_nginx
    bring_up_services || true
    wait_for_answers
    run_first_program bash
    say "  the server answers at $(front_url)/mcp; Python, the rest and the page follow"
    answers_with=bash
    phase "Python and the page"
    begin_page
    ensure_images python
    finish_page
    render_nginx
    bring_up_services || true
    wait_for_answers
    run_first_program python
    answers_with="bash and python"
    phase "the rest of the image"
    ensure_images
    answers_with=
    print_ending
}

# Where there are images, of now or earlier: all that is new is taken up in one step.
bring_up_at_once()
{
    begin_page
    phase "the images"
    ensure_images
    prepare_server
    phase "the page"
    finish_page
    phase "the server"
    render_nginx
    phase "an answer"
    if bring_up_services; then
        wait_for_answers
        run_first_program python
        print_ending
    else
        wait_for_answers
        say "sandcgi is running and up to date ($(seconds_since "$start_ms")): $(front_url)/mcp, token: MCP_API_TOKEN in $env_file"
    fi
}

bring_up()
{
    start_ms=$(now_ms) answers_with=
    trap on_exit EXIT
    check_owner
    make_places
    take_lock
    phase "packages"
    ensure_packages
    phase "settings, ports, certificate"
    write_env_file
    derive_settings
    remember_choices
    note_places
    end_strays
    check_ports_free
    ensure_certificate
    begin_build
    phase "the container engine"
    ensure_engine
    phase "the network of programs"
    ensure_network
    if image_is_there python; then
        bring_up_at_once
    else
        bring_up_by_and_by
    fi
    wait_for_limits
    (run_server doctor --quiet --nginx "$state/nginx") || true # prints what is wrong all the same
    flock -u 9
}

stop_all()
{
    check_owner
    end_strays
    if ! sandcgi_pid >/dev/null && ! nginx_pid >/dev/null && ! dockerd_pid >/dev/null && ! podman_pid >/dev/null; then
        say "nothing of start.sh's is running (state folder: $state)"
        return
    fi
    stop_nginx
    stop_sandcgi
    stop_own_dockerd
    stop_own_podman
}

# status_line NAME GOOD(yes|no) TEXT
status_line()
{
    [[ $2 == yes ]] || all_well=no
    printf '%-8s %-12s %s\n' "$1" "$([[ $2 == yes ]] && printf running || printf 'not running')" "$3"
}

status_of_server()
{
    local pid
    if ! pid=$(sandcgi_pid); then
        status_line sandcgi no "start it: ./start.sh"
    elif sandcgi_is_noted; then
        status_line sandcgi yes "process $pid, up to date"
    else
        status_line sandcgi yes "process $pid, but the program or the settings have changed since; ./start.sh takes them up"
    fi
    [[ -z $pid ]] || run_server status 2>&1 | sed 's/^/         /' || true
}

show_status()
{
    local pid problem all_well=yes images
    check_owner
    [[ -f $env_file ]] || die "there is no $env_file; sandcgi was never started here: ./start.sh"
    derive_settings
    choose_certificate
    engine=$(setting DOCKER_HOST "$default_engine")
    [[ $engine == "$default_engine" ]] || export DOCKER_HOST=$engine
    if engine_answers "$engine"; then
        images=$(count_images)
        status_line engine yes "$engine${images:+, $images runner images}"
    else
        status_line engine no "$engine does not answer"
    fi
    status_of_server
    if pid=$(nginx_pid); then
        status_line nginx yes "process $pid, $(front_url)/mcp and http://localhost:$http_port/mcp"
    else
        status_line nginx no "start it: ./start.sh"
    fi
    if [[ -e $cert ]] && ! problem=$(check_certificate 2>&1); then
        status_line healthz no "${problem##*start.sh: }"
    elif healthy; then
        status_line healthz yes "$(front_url)/healthz answers 200"
    else
        status_line healthz no "$(front_url)/healthz does not answer 200; see $log_dir"
    fi
    [[ $all_well == yes ]] || exit 3
}

# Set before anything is started, so that Ctrl-C stops whatever has been started by then.
stop_on_signals()
{
    tail_pid=
    trap 'printf "\n"; [[ -z $tail_pid ]] || kill "$tail_pid" 2>/dev/null || true; answers_with=; stop_all; exit 0' INT TERM HUP
}

run_in_foreground()
{
    say "(logs follow; Ctrl-C stops everything)"
    tail -n 0 -F "$sandcgi_log" "$log_dir/nginx-error.log" 2>/dev/null &
    tail_pid=$!
    while sandcgi_pid >/dev/null && nginx_pid >/dev/null; do
        sleep 1 &
        wait $! || true
    done
    kill "$tail_pid" 2>/dev/null || true
    stop_all
    die "sandcgi or nginx has ended by itself; see $sandcgi_log and $log_dir/nginx-error.log"
}

main()
{
    local words=() word
    for word in "$@"; do
        # shellcheck disable=SC2034 # nginx/setup/common.sh reads it
        if [[ $word == --verbose ]]; then verbose=yes; else words+=("$word"); fi
    done
    ((${#words[@]} <= 1)) || die "one option at most besides --verbose; see ./start.sh --help"
    set -- "${words[@]}"
    PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # Debian keeps nginx there, and users' paths do not
    choose_places
    case ${1:-} in
    '')
        trap 'die "interrupted; call it again, it goes on with what is missing"' INT TERM HUP
        bring_up
        ;;
    --foreground)
        stop_on_signals
        bring_up
        run_in_foreground
        ;;
    --stop) stop_all ;;
    --status) show_status ;;
    -h | --help) usage ;;
    *) die "unknown option '$1'; see ./start.sh --help" ;;
    esac
}

# The tests source this file for its functions.
if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    main "$@"
fi
