#!/usr/bin/env bash
# Puts sandcgi into an nginx that is there already; "sandcgi setup nginx" calls it. See usage() below.
# shellcheck disable=SC2034,SC2154 # setup/*.sh and this file share variables
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(dirname "$here")
for part in common settings site services; do
    # shellcheck source=/dev/null
    source "$here/setup/$part.sh"
done
we="sandcgi setup"

usage()
{
    cat <<'END'
usage: sandcgi setup nginx --server-name NAME [OPTION…]

Writes what an nginx that is there already includes to serve sandcgi, adds to the settings file what is missing there,
has nginx check it, and says which lines to add to nginx's configuration. Called again it brings everything up to date;
secrets and tokens stay. Run it as root.

  --server-name NAME   the public host name; links begin with https://NAME, unless PUBLIC_BASE_URL is set
  --path /PATH/        serve everything below this path: /PATH/mcp, /PATH/files/ …
  --config FILE        the settings (default: $SANDCGI_CONFIG, else /etc/sandcgi/sandcgi.conf); made if it is not there
  --page FOLDER        the page at / (below PATH), as "make page" has made it; of an
                       installation that has it /usr/share/sandcgi/page
  --output FOLDER      the files that nginx includes (default: /etc/nginx/sandcgi)
  --nginx-conf FILE    nginx's main configuration file (default: the one that nginx names)

sandcgi setup nginx --check
only looks whether nginx can serve sandcgi: its version and its modules.
END
}

take_options()
{
    server_name='' path='' output=/etc/nginx/sandcgi nginx_conf='' page=''
    [[ ${1:-} == nginx ]] || { usage >&2 && exit 2; }
    shift
    while (($#)); do
        [[ $1 != --help ]] || { usage && exit 0; }
        [[ $1 =~ ^--(server-name|path|config|page|output|nginx-conf)$ ]] || die "unknown option '$1'; see: sandcgi setup nginx --help"
        (($# >= 2)) || die "$1 needs a value"
        case $1 in
        --server-name) server_name=$2 ;;
        --path) path=${2%/} ;;
        --config) env_file=$(absolute "$2") ;;
        --page) page=$(absolute "${2%/}") ;;
        --output) output=$(absolute "$2") ;;
        --nginx-conf) nginx_conf=$(absolute "$2") ;;
        esac
        shift 2
    done
    [[ $server_name =~ ^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$ ]] || die "--server-name must be the host name of the server block, such as sandbox.example.org"
    [[ $path =~ ^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$ ]] || die "--path must be a path such as /sandbox/, not '$path'"
    [[ -z $page || -f $page/index.html ]] || die "--page must be a folder with the page, which \"make page\" makes as build/page, not '$page'"
}

absolute()
{
    [[ $1 == /* ]] || printf '%s/' "$PWD"
    printf '%s' "$1"
}

# The account and group of nginx's workers: of its configuration, else the one that it was built for.
find_nginx_account()
{
    local built account group=''
    built=$(nginx -V 2>&1)
    [[ -n $nginx_conf ]] || nginx_conf=$(sed -n 's/.*--conf-path=\([^ ]*\).*/\1/p' <<<"$built")
    [[ -r $nginx_conf ]] || die "nginx's main configuration file is not at ${nginx_conf:-a place that nginx -V names}; name it with --nginx-conf"
    read -r account group < <(sed -n 's/^[[:space:]]*user[[:space:]]\{1,\}\([^;]*\);.*/\1/p' "$nginx_conf" | tail -n 1) || true
    [[ -n $account ]] || account=$(sed -n 's/.*--user=\([^ ]*\).*/\1/p' <<<"$built")
    account=${account:-nobody}
    getent passwd "$account" >/dev/null || die "nginx's account '$account' ($nginx_conf) does not exist; correct the line \"user\" there"
    nginx_user="$account ${group:-$(id -gn "$account")}"
}

# The settings file, made from the example where there is none. What was chosen earlier stays.
ensure_settings_file()
{
    local name value
    if [[ ! -e $env_file ]]; then
        mkdir -p "$(dirname "$env_file")" "$output"
        "$project/service/settings.sh" "$env_file" root "$output/front-secret.conf" || die "$env_file could not be made, see above"
        replace_setting SANDCGI_LISTEN_GROUP "${nginx_user#* }"
        say "made $env_file with random secrets"
    fi
    for name in FILE_SECRET MCP_API_TOKEN; do
        value=$(env_value "$name") || value=
        [[ -n $value && $value != change-me* ]] || replace_setting "$name" "$(random_hex)"
    done
    value=$(env_value PUBLIC_BASE_URL) || value=
    [[ -z $page ]] || replace_setting NGINX_PAGE "$page"
    [[ -n $value && ! $value =~ ^https?://localhost(:8443)?$ ]] || replace_setting PUBLIC_BASE_URL "https://$server_name$path"
}

# What serve needs behind nginx and the settings file does not say; then all values as the program reads them.
choose_settings()
{
    local pair values sockets=/run/sandcgi
    SANDBOX_ROOT=$(setting SANDBOX_ROOT /var/lib/sandcgi/sandboxes)
    SANDCGI_LISTEN=$(setting SANDCGI_LISTEN "$sockets/fastcgi.sock")
    [[ $SANDCGI_LISTEN != /* ]] || sockets=${SANDCGI_LISTEN%/*}
    SANDCGI_HUB=$(setting SANDCGI_HUB "$sockets/hub.sock")
    SANDCGI_SECRET_FILE=$(setting SANDCGI_SECRET_FILE "$output/front-secret.conf")
    SANDCGI_LISTEN_GROUP=$(setting SANDCGI_LISTEN_GROUP "${nginx_user#* }")
    [[ $(stat -c %u "$env_file") != 0 ]] || SANDCGI_USER=$(setting SANDCGI_USER sandcgi)
    SANDCGI_TOKENS_FILE=$(setting SANDCGI_TOKENS_FILE "$output/tokens.map")
    SANDCGI_TOKENS_RELOAD=$(setting SANDCGI_TOKENS_RELOAD "$(reload_command)")
    export SANDBOX_ROOT SANDCGI_LISTEN SANDCGI_HUB SANDCGI_SECRET_FILE SANDCGI_LISTEN_GROUP SANDCGI_TOKENS_FILE SANDCGI_TOKENS_RELOAD
    [[ -z ${SANDCGI_USER:-} ]] || export SANDCGI_USER
    values=$("$program" settings --values --config "$env_file" 2>&1) || die "${values#sandcgi: }"
    while IFS= read -r pair; do
        [[ $pair == *'=(secret)' || $pair == *'=(empty)' ]] || export "${pair?}"
    done <<<"$values"
    api_token=$(setting MCP_API_TOKEN '')
}

# Links would lead elsewhere.
check_settings_fit()
{
    [[ $SANDCGI_AUTH == nginx ]] || die "SANDCGI_AUTH=$SANDCGI_AUTH in $env_file: with nginx in front it must be nginx"
    [[ $(public_host) == "$server_name" ]] ||
        die "PUBLIC_BASE_URL in $env_file is $PUBLIC_BASE_URL: its host must be $server_name (--server-name), or links would lead elsewhere"
    [[ $(public_path) == "$path" ]] ||
        die "PUBLIC_BASE_URL in $env_file is $PUBLIC_BASE_URL: its path must be ${path:-empty} (--path), or links would lead elsewhere"
    getent group "$SANDCGI_LISTEN_GROUP" >/dev/null || die "the group SANDCGI_LISTEN_GROUP=$SANDCGI_LISTEN_GROUP in $env_file does not exist"
    id -Gn "${nginx_user% *}" | grep -qwF -- "$SANDCGI_LISTEN_GROUP" || [[ ${nginx_user#* } == "$SANDCGI_LISTEN_GROUP" ]] ||
        die "nginx's account ${nginx_user% *} is not in the group SANDCGI_LISTEN_GROUP=$SANDCGI_LISTEN_GROUP of $env_file, and could not open the sockets"
}

# Whoever can read the settings runs the server, and needs the secret; nginx reads it as root.
ensure_secret()
{
    local secret
    secret=$(grep -m 1 -oE '[0-9a-f]{32,}' "$SANDCGI_SECRET_FILE" 2>/dev/null) || secret=$(random_hex)
    printf 'fastcgi_param SANDCGI_SECRET "%s";\n' "$secret" | write_secret "$output/front-secret.conf"
    [[ $SANDCGI_SECRET_FILE == "$output/front-secret.conf" ]] || printf '%s\n' "$secret" | write_secret "$SANDCGI_SECRET_FILE"
    chown --reference="$env_file" "$SANDCGI_SECRET_FILE"
}

# write_secret FILE <text: for its owner only; left alone when it says that already.
write_secret()
{
    local text
    text=$(cat)
    if [[ ! -f $1 ]] || ! cmp -s "$1" - <<<"$text"; then
        write_file 0600 "$1" <<<"$text"
    fi
}

make_folders()
{
    local socket
    for socket in "$SANDCGI_LISTEN" "$SANDCGI_HUB" "$SANDCGI_BROKER"; do
        [[ $socket != /* || -d ${socket%/*} ]] || { mkdir -p "${socket%/*}" && chown --reference="$env_file" "${socket%/*}"; }
    done
    mkdir -p "$(dirname "$SANDBOX_ROOT")"
    ensure_sandbox_root
    chown --reference="$env_file" "$SANDBOX_ROOT"
    chgrp "$SANDCGI_LISTEN_GROUP" "$SANDBOX_ROOT"
    mkdir -p "$output" && chmod 0755 "$output"
}

# nginx's workers write the bodies of uploads where the broker can take them: as root, or as the same account.
uploads_way()
{
    case $(stat -c %u "$env_file") in
    0 | "$(id -u "${nginx_user% *}")") printf file ;;
    *) printf stream ;;
    esac
}

# write_site FOLDER
write_site()
{
    local page_dir
    page_dir=$(setting NGINX_PAGE '')
    [[ $page_dir == /* ]] || page_dir=
    render_site "$1" PREFIX="$path" PAGE_DIR="$page_dir" UPLOADS="$(uploads_way)" SECRET_CONF="$output/front-secret.conf" FILE_KEY_CONF="$output/file-key.conf" \
        TOKENS_FILE="$tokens_file" LOG_DIR=/var/log/nginx ACCESS_LOG="$(access_log)" CACHE_DIR="$(cache_dir)"
    rm -f "$1/nginx.conf" # a whole nginx, which is there already
}

# Beside nginx's own logs, so that what rotates those rotates this one, too.
access_log()
{
    local folder
    folder=$(nginx -V 2>&1 | sed -n 's/.*--http-log-path=\([^ ]*\).*/\1/p')
    folder=${folder%/*}
    [[ -d $folder ]] || folder=$output
    printf '%s/sandcgi.log' "$folder"
}

# Where nginx has its own folders for temporary files, which is root's.
cache_dir()
{
    local folder
    folder=$(nginx -V 2>&1 | sed -n 's/.*--http-fastcgi-temp-path=\([^ ]*\).*/\1/p')
    folder=${folder%/*}
    [[ $folder == /* && -d $folder ]] || folder=$output
    printf '%s' "$folder"
}

# The new files, in a server of their own, before an nginx that runs could read them.
try_site()
{
    local trial=$1 problem
    write_site "$trial"
    cat >"$trial/trial.conf" <<END
user $nginx_user;
pid $trial/nginx.pid;
error_log stderr;
events { }
http {
    include $trial/http.conf;
    server { listen unix:$trial/trial.sock; include $trial/server.conf; }
}
END
    problem=$(nginx -t -e stderr -c "$trial/trial.conf" 2>&1) || die "nginx refuses the new files: $(grep -m 1 -o '\[emerg\].*' <<<"$problem"); $output is unchanged"
}

reload_command()
{
    if systemd_runs; then
        printf 'systemctl reload nginx'
    else
        printf 'nginx -s reload'
    fi
}

tell_what_to_add()
{
    local block=$nginx_conf dump reload
    reload=$(reload_command)
    dump=$(nginx -T -e stderr -c "$nginx_conf" 2>/dev/null) || dump=
    if [[ $dump == *"# configuration file $output/http.conf:"* && $dump == *"# configuration file $output/server.conf:"* ]]; then
        say "nginx includes both files already. Do: $reload"
        return
    fi
    block=$(awk -v name="$server_name" '
        /^# configuration file / { file = substr($4, 1, length($4) - 1) }
        $1 == "server_name" { for (i = 2; i <= NF; i++) if ($i == name || $i == name ";") { print file; exit } }' <<<"$dump")
    cat <<END
Add these two lines to nginx's configuration:
  in the block http ($nginx_conf):
      include $output/http.conf;
  in the block server of $server_name${block:+ ($block)}:
      include $output/server.conf;
Then do: nginx -t && $reload
END
}

# What an nginx says that includes the files already.
check_whole_nginx()
{
    local problem
    if ! problem=$(nginx -t -e stderr -c "$nginx_conf" 2>&1); then
        die "the files in $output are in place, but nginx refuses its configuration: $(grep -m 1 -o '\[emerg\].*' <<<"$problem")"
    fi
}

main()
{
    program=${SANDCGI_PROGRAM:-sandcgi} log_file=/dev/null
    PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # Debian keeps nginx there, and users' paths do not
    env_file=${SANDCGI_CONFIG:-/etc/sandcgi/sandcgi.conf}
    [[ $* != "nginx --check" ]] || { check_nginx && exit; }
    take_options "$@"
    ((EUID == 0)) || die "needs root: it writes files that only root may read, and has nginx check them"
    check_nginx
    find_nginx_account
    ensure_settings_file
    choose_settings
    check_settings_fit
    note_settings "sandcgi setup nginx" SANDBOX_ROOT SANDCGI_HUB SANDCGI_SECRET_FILE SANDCGI_LISTEN_GROUP SANDCGI_USER \
        SANDCGI_TOKENS_FILE SANDCGI_TOKENS_RELOAD
    tokens_file=$SANDCGI_TOKENS_FILE run_dir=${SANDCGI_LISTEN%/*}
    [[ $run_dir == /* ]] || run_dir=/
    [[ -z ${SANDCGI_USER:-} ]] || ensure_account
    make_folders
    ensure_secret
    "$program" file-key --config "$env_file" | write_secret "$output/file-key.conf"
    sync_token
    trial=$(mktemp -d "$output.XXXXXX")
    trap 'rm -rf "$trial"' EXIT
    try_site "$trial"
    write_site "$output"
    check_whole_nginx
    say "The files for nginx are in $output, the settings in $env_file."
    tell_what_to_add
    say "Start the server: sandcgi serve --config $env_file (as a service: systemctl start sandcgi)"
    say "MCP endpoint: $PUBLIC_BASE_URL/mcp; the token is MCP_API_TOKEN in $env_file."
    say "Another token: sandcgi token add --config $env_file --tenant NAME"
}

main "$@"
