# shellcheck shell=bash disable=SC2034,SC2154 # the files of this folder share variables
# Paths, .env and the environment. Sourced by start.sh; expects $project.

readonly defaults_of_ports='8443 8080'

# The places below the state folder: the environment's, else the one of earlier calls, else the usual one.
choose_places()
{
    binary=$project/build/sandcgi
    program=$binary
    # Their names of before.
    NGINX_HTTPS_PORT=${NGINX_HTTPS_PORT:-${SANDCGI_HTTPS_PORT:-}} NGINX_HTTP_PORT=${NGINX_HTTP_PORT:-${SANDCGI_HTTP_PORT:-}}
    env_file=${SANDCGI_ENV_FILE:-$project/.env}
    [[ $env_file == /* ]] || env_file=$PWD/$env_file
    state=${SANDCGI_STATE_DIR:-}
    [[ -n $state ]] || state=$(env_value START_STATE_DIR) || state=
    if [[ -z $state ]]; then
        state=$project/var
        ((EUID != 0)) || state=/var/lib/sandcgi
    fi
    [[ $state == /* ]] || state=$PWD/$state
    owner_file=$state/run/env-file
    run_dir=$state/run
    log_dir=$state/log
    log_file=$log_dir/start.log
    tokens_file=$state/nginx/tokens.map
    sandcgi_log=$log_dir/sandcgi.log
    sandcgi_pid_file=$run_dir/sandcgi.pid
    nginx_pid_file=$run_dir/nginx.pid
    dockerd_pid_file=$run_dir/dockerd.pid
    podman_pid_file=$run_dir/podman.pid
    own_podman_socket=$run_dir/podman.sock
}

# A state folder belongs to one settings file, and so to one clone: its server is never taken over, stopped or shown by another.
check_owner()
{
    local owner
    owner=$(cat "$owner_file" 2>/dev/null) || return 0
    [[ $owner == "$env_file" || ! -e $owner ]] ||
        die "the state folder $state belongs to the server of $owner; for another server set SANDCGI_STATE_DIR to a folder of its own, NGINX_HTTPS_PORT and NGINX_HTTP_PORT to free ports"
}

make_places()
{
    local longest=$run_dir/broker.sock unsafe=$'[[:space:]"\'\\\\$;{}@]'
    ((${#longest} < 100)) ||
        die "the state folder's path is too long for sockets ($longest); set SANDCGI_STATE_DIR to a shorter one"
    [[ ! $state =~ $unsafe ]] ||
        die "the state folder's path must not contain blanks or quotes: $state; set SANDCGI_STATE_DIR to another"
    mkdir -p "$state" "$run_dir" "$log_dir" "$state/nginx/tmp" "$state/tls" 2>/dev/null ||
        die "cannot make folders below $state; set SANDCGI_STATE_DIR to a folder that you may write"
    chmod 0755 "$state" "$run_dir" "$state/nginx" "$state/nginx/tmp" "$state/tls"
    chmod 0750 "$log_dir"
    : >>"$log_file"
    printf '%s\n' "$env_file" | write_file 0644 "$owner_file"
}

# The value of KEY in .env; fails when it is not there. The program reads it, once it is built.
env_value()
{
    local value status=0
    [[ -f $env_file ]] || return 1
    value=$("$program" settings --get "$1" --config "$env_file" 2>/dev/null) || status=$?
    ((status <= 1)) || { value=$(env_line "$1") && status=0; } || status=1 # not built, or an older one
    ((status == 0)) && printf '%s' "$value"
}

# The same without the program (common/base/conf_line.c). The last line of a key counts.
env_line()
{
    local line value found=1
    while IFS= read -r line || [[ -n $line ]]; do
        [[ ${line#$'\xef\xbb\xbf'} =~ ^[[:space:]]*(export[[:space:]]+)?$1[[:space:]]*=(.*)$ ]] || continue
        value=${BASH_REMATCH[2]%$'\r'} found=0
        if [[ $value =~ ^[[:space:]]*\"([^\"]*)\"[[:space:]]*(#.*)?$ || $value =~ ^[[:space:]]*\'([^\']*)\'[[:space:]]*(#.*)?$ ]]; then
            value=${BASH_REMATCH[1]}
        else
            value=${value%%[[:space:]]#*}
            value=${value#"${value%%[![:space:]]*}"}
            value=${value%"${value##*[![:space:]]}"}
        fi
    done <"$env_file"
    ((found == 0)) && printf '%s' "$value"
}

declare -A values=()

# All settings as the program has them, with defaults; times and sizes are in one form.
load_values()
{
    local pair text
    text=$("$program" settings --values --config "$env_file" 2>&1) || die "${text#sandcgi: }"
    while IFS= read -r pair; do
        values[${pair%%=*}]=${pair#*=}
    done <<<"$text"
}

# setting KEY DEFAULT: environment before .env before the default; an empty value counts as not set. Where the server takes another
# server's name for KEY (fcgi/settings.c), the default is the setting of that name.
setting()
{
    local value=${!1:-}
    [[ -n $value ]] || value=$(env_value "$1") || true
    printf '%s' "${value:-$2}"
}

# "30s", "5m", "1h" or "500ms", as the program prints times, to whole seconds (rounded up).
to_seconds()
{
    [[ $1 =~ ^([0-9]{1,9})(ms|s|m|h)?$ ]] || return 1
    local number=$((10#${BASH_REMATCH[1]}))
    case ${BASH_REMATCH[2]} in
    ms) number=$(((number + 999) / 1000)) ;;
    m) number=$((number * 60)) ;;
    h) number=$((number * 3600)) ;;
    esac
    printf '%d' "$number"
}

write_env_file()
{
    [[ ! -e $env_file ]] || return 0
    local https=${NGINX_HTTPS_PORT:-${defaults_of_ports% *}} http=${NGINX_HTTP_PORT:-${defaults_of_ports#* }}
    "$project/service/settings.sh" "$env_file" '' "$project/.env.example" "NGINX_HTTPS_PORT=$https" "NGINX_HTTP_PORT=$http" \
        "PUBLIC_BASE_URL=https://localhost:$https" || die "$env_file could not be made, see above"
    say "  wrote $env_file with random secrets"
}

# What the environment has chosen counts in later calls, of other accounts, too: they would look for the server elsewhere.
remember_choices()
{
    local name value earlier url=$PUBLIC_BASE_URL
    [[ $url == https://localhost:* ]] || url=
    earlier=$(env_value START_STATE_DIR) || earlier=
    if [[ -n $earlier && $earlier != "$state" ]] && pid_from "$earlier/run/sandcgi.pid" sandcgi "$env_file" >/dev/null; then
        die "the server of $env_file runs in $earlier; stop it first: SANDCGI_STATE_DIR=$earlier ./start.sh --stop"
    fi
    for name in START_STATE_DIR=$state NGINX_HTTPS_PORT=${NGINX_HTTPS_PORT:-} NGINX_HTTP_PORT=${NGINX_HTTP_PORT:-} \
        PUBLIC_BASE_URL=$url; do
        value=${name#*=} name=${name%%=*}
        [[ -z $value || $value == "$(env_value "$name")" ]] || replace_setting "$name" "$value"
    done
}

# replace_setting NAME VALUE: in the settings file, in one step; its owner and mode stay. The value is not on a command line,
# where ps shows it.
replace_setting()
{
    local new
    new=$(mktemp "$env_file.XXXXXX")
    name=$1 value=$2 awk '
        BEGIN { line = ENVIRON["name"] "=" ENVIRON["value"] }
        $0 ~ "^[ \t]*(export[ \t]+)?" ENVIRON["name"] "=" { if (!done++) print line; next }
        { print }
        END { if (!done) print line }' "$env_file" >"$new"
    chown --reference="$env_file" "$new" && chmod --reference="$env_file" "$new" && mv -f "$new" "$env_file"
}

check_port()
{
    [[ $2 =~ ^[1-9][0-9]{0,4}$ && $2 -le 65535 ]] || die "$1 must be a port number, not '$2'; correct it in $env_file"
}

# Group that nginx's workers run as; empty when nginx is not started as root.
nginx_account()
{
    local name
    ((EUID == 0)) || return 0
    for name in www-data nginx nobody; do
        if getent passwd "$name" >/dev/null; then
            printf '%s %s' "$name" "$(id -gn "$name")"
            return
        fi
    done
    die "there is no account for nginx's workers; make one: useradd --system www-data"
}

# The port of MCP_HTTP_ADDR, which another server's .env has, else ours.
default_http_port()
{
    [[ $(setting MCP_HTTP_ADDR '') =~ :([1-9][0-9]{0,4})$ ]] && printf '%s' "${BASH_REMATCH[1]}" || printf '%s' "${defaults_of_ports#* }"
}

# Defaults that start.sh chooses, exported for the server (the environment overrides .env).
derive_settings()
{
    local max
    https_port=$(setting NGINX_HTTPS_PORT "${defaults_of_ports% *}")
    http_port=$(setting NGINX_HTTP_PORT "$(default_http_port)")
    check_port NGINX_HTTPS_PORT "$https_port"
    check_port NGINX_HTTP_PORT "$http_port"
    nginx_user=$(nginx_account)

    SANDBOX_ROOT=$(setting SANDBOX_ROOT "$state/sandboxes")
    SANDCGI_LISTEN=$(setting SANDCGI_LISTEN "$run_dir/front.sock")
    SANDCGI_HUB=$(setting SANDCGI_HUB "$run_dir/hub.sock")
    SANDCGI_BROKER=$(setting SANDCGI_BROKER "$run_dir/broker.sock")
    SANDCGI_SECRET_FILE=$(setting SANDCGI_SECRET_FILE "$run_dir/front-secret")
    SANDCGI_TOKENS_FILE=$(setting SANDCGI_TOKENS_FILE "$tokens_file")
    SANDCGI_TOKENS_RELOAD=$(setting SANDCGI_TOKENS_RELOAD "$(printf 'test ! -e %q || pkill -HUP -F %q -x nginx' "$nginx_pid_file" "$nginx_pid_file")")
    tokens_file=$SANDCGI_TOKENS_FILE
    SANDCGI_LOG=$(setting SANDCGI_LOG "$(setting SANDBOX_LOG_FILE "$sandcgi_log")") # by its name, so that a reload opens it again after a rotation
    sandcgi_log=$SANDCGI_LOG
    PUBLIC_BASE_URL=$(setting PUBLIC_BASE_URL "https://localhost:$https_port")
    [[ ! $PUBLIC_BASE_URL =~ ^https://localhost:[0-9]+/?$ ]] || PUBLIC_BASE_URL=https://localhost:$https_port
    export SANDBOX_ROOT SANDCGI_LISTEN SANDCGI_HUB SANDCGI_BROKER SANDCGI_SECRET_FILE PUBLIC_BASE_URL
    export SANDCGI_TOKENS_FILE SANDCGI_TOKENS_RELOAD SANDCGI_LOG
    if ((EUID == 0)); then
        SANDCGI_USER=$(setting SANDCGI_USER sandcgi)
        SANDCGI_LISTEN_GROUP=$(setting SANDCGI_LISTEN_GROUP "${nginx_user#* }")
        export SANDCGI_USER SANDCGI_LISTEN_GROUP
    fi

    api_token=$(setting MCP_API_TOKEN '')
    [[ -n $api_token ]] || die "MCP_API_TOKEN is missing in $env_file; put in what this prints: openssl rand -hex 32"
}

# What start.sh has chosen stands in .env as well, so that "sandcgi check", "sandcgi stdio" and a service file find the same
# server.
note_places()
{
    note_settings start.sh SANDBOX_ROOT SANDCGI_LISTEN SANDCGI_LISTEN_GROUP SANDCGI_HUB SANDCGI_BROKER SANDCGI_SECRET_FILE \
        SANDCGI_USER SANDCGI_TOKENS_FILE SANDCGI_TOKENS_RELOAD SANDCGI_LOG
}

# note_settings CHOOSER NAME…: adds the variables of these names to .env, unless they are empty or there.
note_settings()
{
    local chooser=$1 name missing=()
    for name in "${@:2}"; do
        [[ -z ${!name:-} ]] || env_value "$name" >/dev/null || missing+=("$name=${!name}")
    done
    ((${#missing[@]})) || return 0
    [[ -z $(tail -c 1 "$env_file") ]] || printf '\n' >>"$env_file"
    printf '%s\n' '' "# Chosen by $chooser." "${missing[@]}" >>"$env_file"
}

# The environment of the server: of the caller's variables those that concern it, and that .env does not say as well. The rest
# is the same for cron, sudo and a login shell.
server_environment()
{
    local name
    printf 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\0HOME=/\0LANG=C.UTF-8\0'
    for name in $(compgen -e); do
        case $name in
        SANDCGI_STATE_DIR | SANDCGI_ENV_FILE | SANDCGI_HTTPS_PORT | SANDCGI_HTTP_PORT | SANDCGI_DISK) ;;
        SANDCGI_* | SANDBOX_* | DOCKER_HOST | DOCKER_TLS_VERIFY | DOCKER_CERT_PATH | FILE_SECRET | FILE_SECRET_OLD | FILE_SECRET_OLD_UNTIL | MCP_API_TOKEN | PUBLIC_BASE_URL)
            [[ $(env_value "$name" && printf .) == "${!name}." ]] || printf '%s=%s\0' "$name" "${!name}"
            ;;
        esac
    done
}
