#!/usr/bin/env bash
# The functions of start.sh, one by one, in a folder of their own; nothing is installed, started or built.
# Prints "ok"/"FAILED" lines and "N passed, N failed, N skipped".
# shellcheck disable=SC2030,SC2031,SC2034,SC2154,SC2317 # functions run in subshells on purpose; variables are start.sh's
set -uo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
tested=${SANDCGI_TEST_BINARY:-$top/build/sandcgi}
trap 'rm -rf "$work"' EXIT
unset DOCKER_HOST SANDCGI_LOG SANDCGI_HTTPS_PORT SANDCGI_HTTP_PORT NGINX_HTTPS_PORT NGINX_HTTP_PORT SANDBOX_ROOT SANDBOX_TIMEOUT_MAX MCP_API_TOKEN PUBLIC_BASE_URL
export SANDCGI_STATE_DIR=$work/state SANDCGI_ENV_FILE=$work/env
passed=0 failed=0 skipped=0 since=${EPOCHREALTIME/[.,]/}

equal()
{
    local now=${EPOCHREALTIME/[.,]/} seconds
    printf -v seconds '%d.%d s' $(((now - since) / 1000000)) $(((now - since) / 100000 % 10))
    since=$now
    if [[ $2 == "$3" ]]; then
        passed=$((passed + 1))
        printf 'ok %s (%s)\n' "$1" "$seconds"
    else
        failed=$((failed + 1))
        printf 'FAILED %s (%s)\n    got    %s\n    wanted %s\n' "$1" "$seconds" "${2//$'\n'/$'\n'    }" "${3//$'\n'/$'\n'    }"
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

# Not by the way for a program that is not built.
program_value()
{
    program=$tested
    env_line()
    {
        printf 'the program was not asked\n'
    }
    env_value "$1"
}

test_reading_env()
{
    cp "$top/tests/settings/lines.env" "$work/env" # tests/unit/base/test_conf.c reads the same
    local row reader
    for reader in env_line program_value; do
        while IFS= read -r row; do
            equal ".env, $reader: ${row%%=*}" "$(within "$reader" "${row%%=*}"; printf .)" "${row#*=}."
        done <"$top/tests/settings/lines.expected"
        within "$reader" NOT_THERE >/dev/null
        equal ".env, $reader: a key that is not there fails" $? 1
    done
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
    NGINX_HTTPS_PORT=9443 within write_env_file >/dev/null
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

# What render.sh is told.
rendered()
{
    program=$tested
    derive_settings
    project=$work/fake
    mkdir -p "$project/nginx"
    printf '#!/bin/sh\nshift; printf "%%s\\n" "$@"\n' >"$project/nginx/render.sh"
    chmod +x "$project/nginx/render.sh"
    render_site "$work/site" | sed -n "s/^$1=//p"
}

check_fails()
{
    run_server()
    {
        printf 'sandcgi: note: file %s, line 2: A is taken for B=1\nsandcgi: B: is wrong\n' "$env_file" >&2
        return 1
    }
    SANDCGI_SECRET_FILE=/dev/null
    check_settings
}

test_deriving()
{
    within write_env_file >/dev/null
    equal "links follow the port" "$(NGINX_HTTPS_PORT=10443 within show PUBLIC_BASE_URL)" https://localhost:10443
    equal "but not when they lead elsewhere" "$(PUBLIC_BASE_URL=https://x.test within show PUBLIC_BASE_URL)" https://x.test
    equal "nginx waits longer than the longest run" "$(SANDBOX_TIMEOUT_MAX=10m within rendered READ_TIMEOUT)" 720
    matches "a bad port" "$(NGINX_HTTP_PORT=80x within show http_port)" "must be a port number"
    matches "a port too high" "$(NGINX_HTTP_PORT=70000 within show http_port)" "must be a port number"
    equal "another server's name for the log" "$(SANDBOX_LOG_FILE=/x/log within show SANDCGI_LOG)" /x/log
    equal "but ours counts" "$(SANDBOX_LOG_FILE=/x/log SANDCGI_LOG=/y/log within show SANDCGI_LOG)" /y/log
    equal "and for the size of uploads" "$(SANDBOX_MAX_UPLOAD_BYTES=5368709120 within rendered UPLOAD_MAX)" 5g
    equal "what is wrong is told without what is not" "$(within check_fails)" $'\n'"start.sh: B: is wrong; correct $work/env"
    equal "bursts follow the rate" "$(NGINX_RATE=7 within rendered BURST)" 28
    matches "a bad time" "$(SANDBOX_TIMEOUT_MAX=long within rendered READ_TIMEOUT)" "must be a time"
    matches "a bad rate" "$(NGINX_RATE=fast within rendered RATE)" 'NGINX_RATE is "fast"'
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

remember()
{
    make_places
    write_env_file >/dev/null
    derive_settings
    remember_choices
}

where_it_is()
{
    derive_settings
    printf '%s %s %s' "$state" "$https_port" "$PUBLIC_BASE_URL"
}

# elsewhere COMMAND…: in a shell that knows nothing of the choices of the first start.
elsewhere()
{
    env -u SANDCGI_STATE_DIR SANDCGI_ENV_FILE="$work/env" "$@"
}

test_remembering()
{
    rm -f "$work/env"
    NGINX_HTTPS_PORT=9443 within remember
    (unset SANDCGI_STATE_DIR && within where_it_is) >"$work/where"
    equal "state folder and ports are remembered" "$(cat "$work/where")" "$work/state 9443 https://localhost:9443"
    NGINX_HTTPS_PORT=9444 within remember
    equal "other ports, too, and links follow them" "$(within env_value NGINX_HTTPS_PORT) $(within env_value PUBLIC_BASE_URL)" "9444 https://localhost:9444"
    matches "--status finds the state folder" "$(elsewhere "$top/start.sh" --status 2>&1)" "engine.*https://localhost:9444/healthz"
    matches "--stop, too" "$(elsewhere "$top/start.sh" --stop 2>&1)" "nothing .* is running \(state folder: $work/state\)"
}

# What another clone with the same state folder says; the state folder stays as it is.
test_owner()
{
    local option before other=$work/other.env
    cp "$work/env" "$other"
    before=$(cd "$work/state" && find . | sort | sha256sum)
    for option in "" --stop --status --foreground; do
        matches "another clone's start.sh $option" "$(SANDCGI_ENV_FILE=$other "$top/start.sh" ${option:+"$option"} 2>&1 | xargs)" \
            "^start.sh: the state folder $work/state belongs to the server of $work/env; .*SANDCGI_STATE_DIR"
    done
    equal "nothing of the first one is changed" "$(cd "$work/state" && find . | sort | sha256sum)" "$before"
    mv "$work/env" "$work/env.gone"
    matches "a folder whose clone is gone may be taken" "$(SANDCGI_ENV_FILE=$other "$top/start.sh" --stop 2>&1)" "nothing of start.sh"
    rm -f "$other" "$work/env.gone"
    rm -rf "$work/state"
}

# certificate NAME HOST: NAME.pem and NAME.key, for a day
certificate()
{
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=test -addext "subjectAltName=DNS:$2" \
        -keyout "$work/$1.key" -out "$work/$1.pem" 2>/dev/null
}

# own_certificate CERT KEY: the host that it serves, or what is wrong.
own_certificate()
{
    make_places
    write_env_file >/dev/null
    PUBLIC_BASE_URL=https://sandbox.example.org NGINX_TLS_CERT=$1 NGINX_TLS_KEY=$2
    derive_settings
    ensure_certificate
    printf '%s %s' "$(front_url)" "$(front_options | xargs)"
}

test_certificate()
{
    local cert=$work/own.pem key=$work/own.key
    certificate own '*.example.org'
    certificate other elsewhere.test
    : >"$work/ext"
    equal "a certificate of one's own serves its host" "$(within own_certificate "$cert" "$key")" \
        "https://sandbox.example.org:8443 --cacert $cert --connect-to ::localhost:8443"
    equal "one that has expired" "$(clock='2 days' within later own_certificate "$cert" "$key" | grep -c "the certificate $cert expired on .*; renew it, or correct NGINX_TLS_CERT in $work/env")" 1
    equal "one that is not valid yet" "$(clock='-2 days' within later own_certificate "$cert" "$key" | grep -c "is not valid before .*; renew it, or .* set this machine's clock")" 1
    matches "one for another name" "$(within own_certificate "$work/other.pem" "$work/other.key")" "other.pem is not for sandbox.example.org, the host of PUBLIC_BASE_URL"
    matches "another's key" "$(within own_certificate "$cert" "$work/other.key")" "other.key is not the key of the certificate $cert"
    matches "no such file" "$(within own_certificate "$work/none" "$key")" "$work/none cannot be read"
    matches "no key" "$(within own_certificate "$cert" "$work/none")" "the key $work/none cannot be read"
    matches "no certificate" "$(within own_certificate "$work/ext" "$key")" "is no certificate in PEM form"
    matches "one of the two" "$(within own_certificate "$cert" "")" "belong together"
    matches "a relative path" "$(within own_certificate own.pem own.key)" "must be absolute paths"
    equal "each in one line" "$(within own_certificate "$cert" "$work/other.key" | grep -c .)" 1
    equal "none: a self-signed one, for localhost" "$(within own_certificate "" "" | tail -n 1)" "https://localhost:8443 --cacert $work/state/tls/cert.pem"
    rm -rf "$work/state" "$work/env"
}

# later COMMAND…: at another time, as the shell tells it.
later()
{
    date() { if [[ $* == +%s ]]; then command date -d "$clock" +%s; else command date "$@"; fi; }
    "$@"
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
    install_packages mmdebstrap
}

test_packages()
{
    equal "only what is missing" "$(within only_jq_missing)" "jq "
    matches "no apt: says what to install" "$(within ensure_without_apt)" "install these.*: jq"
    within ensure_with_fake_apt >/dev/null
    matches "apt: installs just that" "$(cat "$work/apt")" "install -y --no-install-recommends nginx-light jq"
    equal "the lists are read once" "$(grep -c update "$work/apt")" 1
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
    program=$tested
    sync_token
    "$program" token list --file "$state/nginx/tokens.map" 2>/dev/null | awk 'NR > 1 { print $2 }' | xargs
}

test_tokens()
{
    local one two added
    one=$(within random_hex) two=$(within random_hex)
    within make_places
    equal "the token of .env is there" "$(within tenants "$one")" default
    "$tested" token add --tenant alice --file "$work/state/nginx/tokens.map" --no-reload >/dev/null 2>&1
    added=$("$tested" token add --file "$work/state/nginx/tokens.map" --no-reload 2>/dev/null)
    added=${added#scg_} added=${added%%_*}
    equal "further tokens stay" "$(within tenants "$one")" "default alice default"
    equal "a new one in .env replaces the old one only" "$(within tenants "$two")" "alice default default"
    equal "the old one is gone, the added one is not" \
        "$(grep -c "$one" "$work/state/nginx/tokens.map") $(grep -c "$added" "$work/state/nginx/tokens.map")" "0 1"
    echo nonsense >>"$work/state/nginx/tokens.map"
    matches "a bad line in the file is what is wrong, not the token" "$(within tenants "$two" | tail -n 1)" \
        "^start.sh: MCP_API_TOKEN was not added to nginx's tokens: $work/state/nginx/tokens.map, line [0-9]+: .*; correct or remove it$"
    matches "an impossible token" "$(within tenants 'x y')" "cannot be used"
}

# written: write_file on a disk that is full.
written()
{
    cat() { return 1; }
    write_file 0600 "$work/full/file" <<<text
    echo on
}

test_writing_files()
{
    mkdir "$work/full"
    equal "a file that cannot be written ends it with one line" "$(within written | xargs)" "start.sh: cannot write $work/full/file; check its permissions and the disk"
    equal "and nothing half-written is left" "$(ls "$work/full")" ""
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
    has_podman() { [[ -n $podman_there ]]; }
    start_podman() { engine=unix:///run/user/1000/podman/podman.sock; }
    start_own_podman()
    {
        echo started
        answering=unix://$own_podman_socket
    }
    ensure_engine
    printf '%s|%s|%s\n' "$engine" "${DOCKER_HOST:-}" "$(env_value DOCKER_HOST)"
}

test_engine()
{
    local answering='' found='' podman_there=''
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
    answering='' podman_there=yes found=unix:///run/user/1000/podman/podman.sock
    equal "an ordinary user's Podman is started rather than Docker installed" "$(found='' within engine_state | tail -n 1)" "$found|$found|$found"
    rm -f "$work/env"
    found=unix://$work/state/run/podman.sock
    equal "start.sh's own Podman is started again" "$(DOCKER_HOST=$found within engine_state | sed -n '1p;$p' | xargs)" "started $found|$found|$found"
    rm -f "$work/env"
}

# images STATUS…: ensure_images with a builder that ends so, one after the other.
images()
{
    make_places
    left=("$@")
    ensure_engine_client() { :; }
    install_packages() { printf 'installed %s\n' "$*"; }
    run_image_builder()
    {
        local status=${left[0]}
        left=("${left[@]:1}")
        ((status == 0)) || printf '  bash: build    runners: no base\n failed\n' >>"$log_file" # two writers
        return "$status"
    }
    ensure_images
    echo made
}

# wanted_extras: what the builder gets of RUNNER_EXTRAS.
wanted_extras()
{
    make_places
    project=$work/project
    mkdir -p "$project/runners"
    # shellcheck disable=SC2016 # the builder expands it
    printf '#!/bin/sh\necho "extras: $RUNNER_EXTRAS"\n' >"$project/runners/build.sh"
    chmod 755 "$project/runners/build.sh"
    build_images bash
    rm -rf "$project"
}

# build STATUS: the build beside something else, which ends so.
build()
{
    make_places
    wanted=$1
    build_program()
    {
        echo built
        return "$wanted"
    }
    begin_build
    echo meanwhile
    finish_build
    echo on
}

# page VALUE: where the page is with that NGINX_PAGE, on a machine that cannot have npm.
page()
{
    make_places
    export NGINX_PAGE=$1
    have() { [[ $1 != npm ]]; }
    install_packages() { return 1; }
    begin_page
    finish_page
    echo "at=$page_dir"
}

# made_page: where the page is when it has been made now.
made_page()
{
    make_places
    have() { :; }
    page_is_shipped() { return 1; }
    node_is_new_enough() { :; }
    make_page() { mkdir "$1"; }
    begin_page
    finish_page >/dev/null
    echo "at=$page_dir"
}

# earlier_page VALUE: where the page is with that NGINX_PAGE before this call has made it.
earlier_page()
{
    export NGINX_PAGE=$1
    take_earlier_page
    echo "at=$page_dir"
}

test_page()
{
    equal "no page of an earlier call" "$(within earlier_page true)" "at="
    equal "a page that is made is there at once" "$(within made_page)" "at=$work/state/page"
    touch "$work/state/page/index.html"
    equal "it is there for the next call" "$(within earlier_page true)" "at=$work/state/page"
    equal "unless it is not wanted any more" "$(within earlier_page false)" "at="
    equal "NGINX_PAGE=false leaves the page out" "$(within page false | xargs)" "at="
    equal "a folder is the page that was made" "$(within page /srv/page | xargs)" "at=/srv/page"
    matches "without npm one line says why there is no page" "$(within page true | xargs)" "^\(no page at /: npm is missing; .*\) at=$"
    rm -rf "$work/state"
}

test_images()
{
    equal "images are made" "$(within images 0 | xargs)" made
    equal "mmdebstrap is installed where the builder needs it, without a word of failure" "$(within images 3 0 | xargs)" "installed mmdebstrap made"
    matches "another failure is one line with its reason" "$(within images 1 | xargs)" "^start.sh: the runner images could not be made: no base; see "
    equal "without RUNNER_EXTRAS there are none" "$(within wanted_extras)" "extras: "
    echo 'RUNNER_EXTRAS="r media"' >"$work/env"
    equal "RUNNER_EXTRAS in .env reaches the builder" "$(within wanted_extras)" "extras: r media"
    rm -f "$work/env"
    equal "the program is built beside" "$(within build 0 | xargs)" "meanwhile built on"
    equal "a failed build ends it" "$(within build 1 | xargs)" "meanwhile built"
    rm -rf "$work/state"
}

# Stand-ins for the steps of a start; those that count say their names. $there tells for which language there is an image,
# $unmade which one cannot be made ("all": the last step), $interrupted at which one a signal comes; $changed is
# bring_up_services' status.
stand_in()
{
    local step
    for step in take_lock ensure_packages write_env_file derive_settings remember_choices note_places end_strays check_ports_free \
        ensure_certificate ensure_engine ensure_engine_client ensure_network ensure_account ensure_sandbox_root check_settings \
        sync_token write_file_key take_earlier_page render_nginx wait_for_answers wait_for_limits run_server flock; do
        eval "$step() { :; }"
    done
    [[ -n ${phases:-} ]] || phase() { :; }
    for step in begin_build finish_build begin_page finish_page run_first_program print_ending stop_all; do
        eval "$step() { echo $step \"\$@\"; }"
    done
    check_owner() { start_pid=$BASHPID; }
    image_is_there() { [[ $1 == "$there" ]]; }
    front_url() { printf https://here; }
    bring_up_services()
    {
        echo services
        return "$changed"
    }
    build_images()
    {
        echo images "$@"
        [[ ${1:-all} != "$unmade" ]] || return 1
        [[ ${1:-all} == "$interrupted" ]] || return 0
        sleep 300 &
        echo $! >"$work/builder"
        wait_until 20 waits "$start_pid"
        kill -TERM "$start_pid"
        wait
    }
}

waits()
{
    grep -q '^State:.S' "/proc/$1/status"
}

# start [OPTION]: start.sh with these stand-ins; then its status.
start()
{
    local status=0
    stand_in
    main "$@" &
    wait $! || status=$?
    echo "status $status"
}

# the_builder_ends: what the builder had started when the signal came is gone.
the_builder_ends()
{
    wait_gone 20 "$(cat "$work/builder")" && echo gone
}

test_order()
{
    local there='' unmade='' interrupted='' changed=0 goes_on="start.sh: the server still answers at https://here/mcp and runs"
    equal "a new machine: a program in bash runs before the rest is made" "$(within start | xargs)" \
        "begin_build images bash finish_build services run_first_program bash the server answers at https://here/mcp; Python, the rest and the page follow \
begin_page images python finish_page services run_first_program python images print_ending status 0"
    matches "without bash there is no server" "$(unmade=bash within start | xargs)" "images bash start.sh: the runner images could not be made: ; see [^ ]*start.log status 1$"
    matches "without Python the server stays" "$(unmade=python within start | xargs)" \
        "images python start.sh: the runner images could not be made: .* $goes_on bash\. ./start.sh makes what is missing; .* status 1$"
    matches "without a later image, too" "$(unmade=all within start | xargs)" " $goes_on bash and python\. .* status 1$"
    matches "a signal ends what is built, not the server" "$(interrupted=python within start | xargs)" \
        "images python start.sh: interrupted; call it again, .* $goes_on bash\. .* status 1$"
    equal "the builder ends at once" "$(within the_builder_ends)" gone
    matches "in the foreground it ends everything" "$(interrupted=python within start --foreground | xargs)" "images python stop_all status 0$"
    equal "the builder, too" "$(within the_builder_ends)" gone
    there=python
    equal "where there is Python, all images are made first" "$(within start | xargs)" \
        "begin_build begin_page images finish_build finish_page services run_first_program python print_ending status 0"
    changed=1
    matches "where nothing has changed, no program runs" "$(within start | xargs)" "services sandcgi is running and up to date \([0-9.]+ s\): .* status 0$"
    rm -rf "$work/state"
}

# ending WHERE: what is printed at the end, on a terminal or not.
ending()
{
    cert_host=localhost https_port=8443 http_port=8080 cert=/c.pem page_dir=/page api_token="sesame/1 2" binary=sandcgi
    [[ $1 != terminal ]] || on_terminal() { :; }
    print_ending
}

test_ending()
{
    local there phases=yes on
    for there in '' python; do
        equal "the parts of a start are counted${there:+, where there are images}" "$(changed=0 unmade='' interrupted='' within start | grep -o '^[0-9] of 9' | xargs)" \
            "1 of 9 2 of 9 3 of 9 4 of 9 5 of 9 6 of 9 7 of 9 8 of 9 9 of 9"
    done
    on=$(within ending terminal)
    matches "on a terminal the page's link signs in" "$on" $'\n'"  http://localhost:8080/#token=sesame%2F1%202"$'\n'
    matches "and Claude Code's line is filled in" "$on" "claude mcp add --transport http sandcgi http://localhost:8080/mcp --header Authorization:.+Bearer.+sesame/1.+2"
    equal "elsewhere the token is not shown" "$(within ending pipe | grep -c sesame) $(within ending pipe | grep -c "http://localhost:8080/$")" "0 1"
    equal "one command calls it" "$(within ending pipe | grep -c ^curl)" 1
    equal "lines for maintainers are in the log" "$(within detail "a process") $(verbose=yes within detail "a process")" " a process"
    equal "a step that takes less than a second is not shown" "$(within quick_step)" ""
    matches "but with --verbose, or when it fails" "$(verbose=yes within quick_step) $(within quick_step false)" "quick .* [0-9.]+ s +quick +failed"
    rm -rf "$work/state"
}

# quick_step [COMMAND]
quick_step()
{
    log_file=$work/log
    step quick "${1:-true}"
}

readonly forty_two='{"result":{"structuredContent":{"stdout":"42\n"}}}'

# program LANGUAGE: the first program at a server that finds the image at the second look; then what it was asked.
program()
{
    local language=$1
    log_file=$work/log start_ms=$(now_ms)
    printf '{}' >"$work/found"
    : >"$work/asked"
    call_json()
    {
        jq -r '.params | .name, .arguments.language // empty' <<<"$1" >>"$work/asked"
        case $(jq -r '.params | "\(.name) \(.arguments.code)"' <<<"$1") in
        list_runners*)
            cat "$work/found"
            printf '{"result":{"structuredContent":{"languages":[{"language":"%s"}]}}}' "$language" >"$work/found"
            ;;
        "run_code print(6 * 7)" | "run_code echo \$((6 * 7))") printf '%s' "${program_answer:-$forty_two}" ;;
        esac
    }
    run_first_program "$language"
    cat "$work/asked"
}

test_first_program()
{
    local language program_answer=''
    for language in bash python; do
        matches "a first program in $language, when the server has found the image" "$(within program "$language" | xargs)" \
            "^first program \($language\) [0-9.]+ s, [0-9.]+ s after the start list_runners list_runners run_code $language$"
    done
    for program_answer in '{"result":{"structuredContent":{"status":"busy"},"isError":true}}' '{"error":{"code":-32600,"message":"too many calls of this tenant"}}'; do
        matches "a server that others use is well: $program_answer" "$(within program bash | xargs)" "first program \(bash\) left out: the server is busy list_runners"
    done
    program_answer='{"result":{"structuredContent":{"status":"error"}}}'
    matches "one that does not run it is not" "$(within program bash 2>&1)" "start.sh: the program did not print 42 but: .*error"
}

# asked URL PATH: how curl would ask the engine.
asked()
{
    curl() { echo "$*"; }
    engine_get "$@"
}

# there LANGUAGE
there()
{
    engine=unix:///fake
    engine_get() { printf '[{"Labels":{"sandbox.language":"python bash"}},{"Labels":null}]'; }
    image_is_there "$1" && echo yes || echo no
}

test_asking_engine()
{
    equal "an image is there for each of its languages" "$(within there python) $(within there bash) $(within there pyt)" "yes yes no"
    matches "a socket is asked" "$(within asked unix:///run/x.sock /info)" "--unix-socket /run/x.sock http://localhost/info$"
    matches "a port" "$(within asked tcp://host:1 /info)" " http://host:1/info$"
    matches "a port with certificates" "$(DOCKER_TLS_VERIFY=1 DOCKER_CERT_PATH=/certs within asked tcp://host:1 /info)" "--cacert /certs/ca.pem .* https://host:1/info$"
}

# no_engine PROGRAMS…: an ordinary user without an engine that answers, and with these programs.
no_engine()
{
    local programs=" $* "
    is_ordinary_user() { :; }
    docker_is_closed() { [[ -n $docker_closed ]]; }
    have() { [[ $programs == *" $1 "* ]]; }
    XDG_RUNTIME_DIR=/run/user/1000
    check_engine_permission
    echo "goes on"
}

test_engine_of_ordinary_user()
{
    local docker_closed=''
    equal "nothing, with sudo: Docker is installed" "$(within no_engine sudo)" "goes on"
    matches "nothing, without sudo" "$(within no_engine)" "no container engine.*ask for the packages podman and uidmap"
    docker_closed=1
    matches "Docker is closed, no Podman" "$(within no_engine sudo)" "install podman uidmap.*the group docker, which makes you root"
}

# network_state ROOTLESS(yes|no): ensure_network with such an engine; the setting then, and that of .env.
network_state()
{
    local rootless=$1
    make_places
    write_env_file >/dev/null
    engine=$default_engine
    engine_is_rootless() { [[ $rootless == yes ]]; }
    have() { return 0; }
    as_root() { :; }
    ensure_network >/dev/null
    printf '|%s|%s\n' "${SANDBOX_NETWORK:-}" "$(env_value SANDBOX_NETWORK)"
}

# podman_engine PROGRAMS…: start_podman with these programs, an account with a range of ids or none, and a Podman that ends at once.
podman_engine()
{
    local programs=" $* "
    make_places
    have() { [[ $programs == *" $1 "* ]]; }
    has_ids() { [[ $programs == *" ids "* ]]; }
    engine_answers() { [[ $1 == "$answering" ]]; }
    systemctl() { [[ $programs == *" systemctl "* ]]; }
    setsid()
    {
        printf '%s\n' "$*"
        echo "no such driver" >&2
    }
    HOME=$work XDG_RUNTIME_DIR=/run/user/1000 start_podman
    printf '%s\n' "$engine"
}

test_network_of_rootless_engine()
{
    rm -f "$work/env"
    equal "an engine with root: the default stays" "$(within network_state no)" "||"
    equal "a rootless one: no network, in .env, too" "$(within network_state yes)" "|none|none"
    rm -f "$work/env"
    equal "what the user has set stays" "$(SANDBOX_NETWORK=lan within network_state yes)" "|lan|"
    rm -rf "$work/state" "$work/env"
}

# limits STATE…: wait_for_limits of a server whose status is that, one after the other.
limits()
{
    local left=("$@")
    make_places
    engine=$default_engine
    engine_is_rootless() { :; }
    wait_until()
    {
        until limits_are_known; do
            left=("${left[@]:1}")
        done
    }
    run_server() { printf '{"limits":%s}\n' "${left[0]}"; }
    wait_for_limits
    printf '%s\n' "${#left[@]}"
}

test_limits()
{
    equal "doctor comes after the test of limits: they hold" "$(within limits '{"hold":false}' '{"hold":true}')" 1
    equal "or do not" "$(within limits '{"hold":false}' '{"hold":false}' '{"hold":false,"lastError":"x"}' '{}')" 2
    equal "no test is awaited where none is made" "$(SANDBOX_LIMITS_CHECK=trust within limits '{"hold":false}')" 1
    rm -rf "$work/state"
}

test_podman()
{
    local answering=''
    matches "Podman needs newuidmap" "$(within podman_engine ids)" "needs newuidmap.*install uidmap"
    matches "and a range of ids" "$(within podman_engine newuidmap)" "needs a range of ids.*usermod --add-subuids"
    matches "one that ends at once: its reason" "$(within podman_engine newuidmap ids)" "Podman does not start: no such driver; the log is"
    matches "it runs in /, and is asked for overlay where the user has not chosen" "$(cat "$work/state/log/podman.log")" "^env -C / podman --storage-driver overlay system service .*/state/run/podman.sock"
    answering=unix:///run/user/1000/podman/podman.sock
    equal "systemd's is taken first" "$(within podman_engine newuidmap ids systemctl)" "$answering"
    rm -rf "$work/state"
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
        echo "skipped the file system of sandboxes: root and fallocate are needed"
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

# nginx_says VERSION: check_nginx with an nginx of that version, with all modules.
nginx_says()
{
    local said=$1
    nginx() { printf 'nginx version: %s\nconfigure arguments: --with-http_secure_link_module --with-http_auth_request_module\n' "$said" >&2; }
    check_nginx
    echo fine
}

test_nginx_version()
{
    local version
    matches "an nginx that is too old" "$(within nginx_says "nginx/1.18.0 (Ubuntu)")" "version 1.18.0, which is too old: install 1.20 or later"
    for version in nginx/1.20.1 nginx/1.22.1 openresty/1.27.1.2 nginx/2.0 freenginx; do
        equal "nginx -V says $version" "$(within nginx_says "$version")" fine
    done
}

# Where nginx listens, with NGINX_BIND.
listens()
{
    loopback_addresses() { printf '127.0.0.1 [::1]'; }
    printf 'NGINX_BIND="%s"\n' "$1" >"$env_file"
    listen_addresses
}

test_addresses()
{
    equal "nginx listens on loopback" "$(within listens '')" "127.0.0.1 [::1]"
    equal "it does with an address of NGINX_BIND, too: start.sh asks there" "$(within listens 192.0.2.5)" "127.0.0.1 192.0.2.5 [::1]"
    equal "each counts once" "$(within listens '127.0.0.1, 0.0.0.0 [::]')" "0.0.0.0 127.0.0.1 [::1] [::]"
    rm "$work/env"
}

# The URL that service/cluster.sh makes of Compose's variables, and what is in the settings then.
composed()
{
    printf 'PUBLIC_BASE_URL=http://localhost\nFILE_SECRET=x\n' >"$work/composed"
    # shellcheck disable=SC2016 # the inner shell's
    env "$@" sh -euc 'scripts=$1; . "$1/service/cluster.sh"; split_url; note_url "$2"; echo "$PUBLIC_BASE_URL"' sh "$top" "$work/composed"
    sort "$work/composed" | xargs
}

test_composed_url()
{
    local row
    for row in Y==http://localhost:8080 BIND=9000=http://localhost:9000 BIND=127.0.0.1:21090=http://localhost:21090 BIND=0.0.0.0:81=http://localhost:81 \
        'BIND=[::]:82=http://localhost:82' BIND=192.0.2.5:83=http://192.0.2.5:83 'PUBLIC_URL=https://a.test/x&|y=https://a.test/x&|y'; do
        equal "Compose with ${row%=*}: links begin with ${row##*=}" "$(composed "${row%=*}" | xargs)" "${row##*=} FILE_SECRET=x PUBLIC_BASE_URL=${row##*=}"
    done
}

# The example for logrotate, after a crash: another process has the number of the server's.
test_rotation()
{
    local pid
    mkdir -p "$work/rotated/run"
    sleep 60 &
    pid=$!
    printf '%s\n' "$pid" | tee "$work/rotated/run/sandcgi.pid" >"$work/rotated/run/nginx.pid"
    sed -n '/pkill/p' "$top/service/sandcgi.logrotate" | sed "s|/var/lib/sandcgi|$work/rotated|" >"$work/rotated/script"
    equal "the log's rotation has an order for both" "$(wc -l <"$work/rotated/script")" 2
    sh -e "$work/rotated/script"
    equal "and signals no process of another name" "$(kill "$pid" && echo there)" there
}

test_options()
{
    matches "--help" "$("$top/start.sh" --help 2>&1)" "usage: ./start.sh"
    matches "an unknown option" "$("$top/start.sh" --nonsense 2>&1)" "unknown option.*--help"
    matches "--verbose goes with another" "$("$top/start.sh" --verbose --stop 2>&1)" "nothing of start.sh's is running"
    matches "two options" "$("$top/start.sh" --stop --status 2>&1)" "one option"
    matches "--stop when nothing runs" "$("$top/start.sh" --stop 2>&1)" "nothing of start.sh's is running"
    matches "--status before the first start" "$("$top/start.sh" --status 2>&1)" "never started here"
}

for name in options addresses composed_url rotation nginx_version reading_env times writing_env deriving places remembering owner certificate packages pids tokens writing_files complaints engine asking_engine engine_of_ordinary_user podman network_of_rootless_engine limits page images order ending first_program disk; do
    "test_$name"
done
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
