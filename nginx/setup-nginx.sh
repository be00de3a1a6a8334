#!/usr/bin/env bash
# Puts sandcgi into an nginx that is there already; "sandcgi setup nginx" calls it. See usage() below.
# shellcheck disable=SC2034,SC2154 # setup/*.sh and this file share variables
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(dirname "$here")
for part in common settings site services existing; do
    # shellcheck source=/dev/null
    source "$here/setup/$part.sh"
done
we="sandcgi setup"

usage()
{
    cat <<'END'
usage: sandcgi setup nginx --server-name NAME [OPTION…]

Writes what an nginx that is there already includes to serve sandcgi, adds to the settings file what is missing there,
has nginx check all of it, and only then puts it in place. It says which lines to add to nginx's configuration. Called
again, without options, it brings everything up to date; options, secrets and tokens stay. Run it as root.

  --server-name NAME   the public host name, of a server block of nginx; links begin with https://NAME and the block's
                       port, unless PUBLIC_BASE_URL is set
  --path /PATH/        serve everything below this path: /PATH/mcp, /PATH/files/ …
  --config FILE        the settings (default: $SANDCGI_CONFIG, else /etc/sandcgi/sandcgi.conf); made if it is not there
  --page FOLDER        the page at / (below PATH), as "make page" has made it; of an
                       installation that has it /usr/share/sandcgi/page
  --output FOLDER      the files that nginx includes (default: /etc/nginx/sandcgi)
  --nginx-conf FILE    nginx's main configuration file (default: the one that nginx names)
  --create-site        make a server block for NAME, too, in nginx's folder conf.d, with
  --certificate FILE, --key FILE   the certificate of NAME with its chain, and its key

sandcgi setup nginx --check
only looks whether nginx can serve sandcgi: its version and its modules.
END
}

take_options()
{
    server_name='' path='' output='' nginx_conf='' page='' create_site='' certificate='' key=''
    [[ ${1:-} == nginx ]] || { usage >&2 && exit 2; }
    shift
    while (($#)); do
        case $1 in
        --help) usage && exit 0 ;;
        --create-site) create_site=1 && shift && continue ;;
        --server-name | --path | --config | --page | --output | --nginx-conf | --certificate | --key) (($# >= 2)) || die "$1 needs a value" ;;
        *) die "unknown option '$1'; see: sandcgi setup nginx --help" ;;
        esac
        case $1 in
        --server-name) server_name=$2 ;;
        --path) path=${2%/} ;;
        --config) config=$(absolute "$2") ;;
        --page) page=$(absolute "${2%/}") ;;
        --output) output=$(absolute "${2%/}") ;;
        --nginx-conf) nginx_conf=$(absolute "$2") ;;
        --certificate) certificate=$(absolute "$2") ;;
        --key) key=$(absolute "$2") ;;
        esac
        shift 2
    done
    [[ $path =~ ^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$ ]] || die "--path must be a path such as /sandbox/, not '$path'"
    [[ -z $page || -f $page/index.html ]] || die "--page must be a folder with the page, which \"make page\" makes as build/page, not '$page'"
    [[ -z $create_site || (-r $certificate && -r $key) ]] || die "--create-site needs --certificate FILE and --key FILE, which are there. $(certificate_hint)"
}

absolute()
{
    [[ $1 == /* ]] || printf '%s/' "$PWD"
    printf '%s' "$1"
}

certificate_hint()
{
    local name=${server_name:-sandbox.example.org}
    printf '%s' "A public certificate: certbot certonly --nginx -d $name. One for a first try: openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256" \
        " -nodes -days 90 -subj /CN=$name -addext subjectAltName=DNS:$name -keyout /etc/ssl/private/$name.key -out /etc/ssl/$name.pem"
}

# As in common.sh; what was tried with the new settings is told with the name of the file that they will be in.
die()
{
    local said=$*
    [[ -z ${stage:-} ]] || said=${said//"$stage/sandcgi.conf"/"$config"}
    printf '\n%s: %s\n' "$we" "$said" >&2
    exit 1
}

# What earlier calls were told, where this one is not: the folder is that of the tokens.
recall_options()
{
    local folder
    env_file=$config
    folder=$(env_value SANDCGI_TOKENS_FILE) || folder=
    folder=${folder%/*}
    [[ -n $output ]] || { [[ -f $folder/values ]] && output=$folder; } || output=/etc/nginx/sandcgi
    [[ -n $nginx_conf ]] || nginx_conf=$(sed -n 's/^nginx-conf=//p' "$output/setup" 2>/dev/null) || true
    PUBLIC_BASE_URL=$(setting PUBLIC_BASE_URL '')
    if [[ -z $server_name && ! $PUBLIC_BASE_URL =~ ^(https?://localhost(:8443)?)?$ ]]; then
        server_name=$(public_host)
        path=${path:-$(public_path)}
    fi
}

# All that is written is written into this folder first. It is below the folder that nginx includes from, so that a rename is enough.
make_stage()
{
    made_folders=()
    trap tidy_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    local folder
    for folder in "$output" "$(dirname "$config")"; do
        [[ -d $folder ]] || { made_folders+=("$folder") && mkdir -p "$folder"; } || die "the folder $folder cannot be made; check its permissions and the disk"
    done
    [[ -z $(ls -A "$output") || -n $(ls -d "$output"/{values,tokens.map,http.conf,.new} 2>/dev/null) ]] ||
        die "$output has other files; --output must be a folder for these alone, such as $output/sandcgi"
    exec 9<"$output"
    flock -n 9 || die "another sandcgi setup is at work in $output"
    stage=$output/.new
    { rm -rf "$stage" && mkdir -m 0700 "$stage"; } || die "cannot write into $output; check its permissions and the disk"
    rm -f "$output"/*.setup-{new,before} "$config".setup-{new,before} # of a call that was killed
    mkdir "$stage/site"
}

tidy_up()
{
    local to
    for to in "${!staged[@]}"; do
        rm -f "$to".setup-{new,before}
    done
    [[ -z ${stage:-} ]] || rm -rf "$stage"
    ((${#made_folders[@]} == 0)) || rmdir --ignore-fail-on-non-empty "${made_folders[@]}" 2>/dev/null || true
}

# The settings, made from the example where there are none, in a copy. What was chosen earlier stays.
stage_settings()
{
    local name value
    env_file=$stage/sandcgi.conf
    if [[ -e $config ]]; then
        cp -p "$config" "$env_file" || die "$config cannot be copied; check the disk"
    else
        "$project/service/settings.sh" "$env_file" "$stage/secret" || die "$config could not be made, see above"
        replace_setting SANDCGI_SECRET_FILE "$output/front-secret.conf"
        replace_setting SANDCGI_LISTEN_GROUP "${nginx_user#* }"
        say "$config gets random secrets"
    fi
    for name in FILE_SECRET MCP_API_TOKEN; do
        value=$(env_value "$name") || value=
        [[ -n $value && $value != change-me* ]] || replace_setting "$name" "$(random_hex)"
    done
    value=$(env_value PUBLIC_BASE_URL) || value=
    [[ -z $page ]] || replace_setting NGINX_PAGE "$page"
    [[ -n $value && ! $value =~ ^https?://localhost(:8443)?$ ]] || replace_setting PUBLIC_BASE_URL "https://$server_name${tls_port:+:$tls_port}$path"
}

# What serve needs behind nginx and the settings file does not say, as variables; then all values as the program reads them. They are not
# exported: the program would take what follows from a setting for a setting.
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
    note_settings "sandcgi setup nginx" SANDBOX_ROOT SANDCGI_HUB SANDCGI_SECRET_FILE SANDCGI_LISTEN_GROUP SANDCGI_USER \
        SANDCGI_TOKENS_FILE SANDCGI_TOKENS_RELOAD
    values=$(ask_program settings --values)
    while IFS= read -r pair; do
        [[ $pair == *'=(secret)' || $pair == *'=(empty)' ]] || printf -v "${pair%%=*}" %s "${pair#*=}"
    done <<<"$values"
    api_token=$(setting MCP_API_TOKEN '')
}

# ask_program WORD…: what the program says by the new settings.
ask_program()
{
    "$program" "$@" --config "$env_file" 2>"$stage/problem" || die "$(tail -n 1 "$stage/problem" | sed 's/^sandcgi: //')"
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
    [[ " $(id -Gn "${nginx_user% *}") ${nginx_user#* } " == *" $SANDCGI_LISTEN_GROUP "* ]] ||
        die "nginx's account ${nginx_user% *} is not in the group SANDCGI_LISTEN_GROUP=$SANDCGI_LISTEN_GROUP of $env_file, and could not open the sockets"
}

# Whoever can read the settings runs the server, and needs the secret; nginx reads it as root.
stage_secrets()
{
    local secret text
    secret=$({ cat "$SANDCGI_SECRET_FILE" "$stage/secret" 2>/dev/null || true; } | grep -m 1 -oE '[0-9a-f]{32,}') || secret=$(random_hex)
    printf 'fastcgi_param SANDCGI_SECRET "%s";\n' "$secret" | write_file 0600 "$stage/site/front-secret.conf"
    if [[ $SANDCGI_SECRET_FILE == "$output/front-secret.conf" ]]; then
        chown --reference="$env_file" "$stage/site/front-secret.conf"
    else
        printf '%s\n' "$secret" | write_file 0600 "$stage/secret"
        chown --reference="$env_file" "$stage/secret"
        staged[$SANDCGI_SECRET_FILE]=$stage/secret
    fi
    text=$(ask_program file-key)
    write_file 0600 "$stage/site/file-key.conf" <<<"$text"
}

# The token of the settings, in a copy of the tokens.
stage_tokens()
{
    local name folder=${SANDCGI_TOKENS_FILE%/*}
    tokens_file=$stage/site/${SANDCGI_TOKENS_FILE##*/}
    [[ $folder == "$output" ]] || { mkdir "$stage/tokens" && tokens_file=$stage/tokens/${SANDCGI_TOKENS_FILE##*/}; }
    for name in "${tokens_file##*/}" env-token.mark; do
        [[ ! -e $folder/$name ]] || cp -p "$folder/$name" "${tokens_file%/*}/$name" || die "$folder/$name cannot be copied; check the disk"
    done
    [[ ! -e $tokens_file ]] || cp -p "$tokens_file" "$stage/tokens.before"
    sync_token
    [[ $folder == "$output" ]] || staged+=(["$SANDCGI_TOKENS_FILE"]=$tokens_file ["$folder/env-token.mark"]=$stage/tokens/env-token.mark)
}

# Bodies of uploads are streamed to the workers: nginx then needs no folder of ours to start.
stage_site()
{
    local page_dir
    page_dir=$(setting NGINX_PAGE '')
    [[ $page_dir == /* ]] || page_dir=
    render_site "$stage/site" CONF_DIR="$output" PREFIX="$path" PAGE_DIR="$page_dir" UPLOADS=stream SECRET_CONF="$output/front-secret.conf" \
        FILE_KEY_CONF="$output/file-key.conf" TOKENS_FILE="$SANDCGI_TOKENS_FILE" LOG_DIR=/var/log/nginx ACCESS_LOG="$(access_log)" CACHE_DIR="$(cache_dir)"
    rm -f "$stage/site/nginx.conf" # a whole nginx, which is there already
    printf 'nginx-conf=%s\n' "$nginx_conf" | write_file 0644 "$stage/site/setup"
    [[ -n $create_site && -z $block ]] || return 0
    site_file=$(dirname "$nginx_conf")/conf.d/sandcgi.conf
    cp -pRH "${site_file%/*}" "$stage/conf.d" # the folder itself, where conf.d is a link to it
    site_text | write_file 0644 "$stage/conf.d/sandcgi.conf"
    staged[$site_file]=$stage/conf.d/sandcgi.conf
}

# Beside nginx's own logs, so that what rotates those rotates this one, too.
access_log()
{
    local folder
    folder=$(sed -n 's/.*--http-log-path=\([^ ]*\).*/\1/p' <<<"$nginx_built")
    folder=${folder%/*}
    [[ -d $folder ]] || folder=$output
    printf '%s/sandcgi.log' "$folder"
}

# nginx would make it readable for all.
ensure_log()
{
    local log
    log=$(access_log)
    [[ -e $log ]] || (umask 0137 && : >"$log" && chgrp --reference="${log%/*}" "$log") || die "$log cannot be made; check the disk"
    [[ ! -f $log ]] || chmod o= "$log"
}

# Where nginx has its own folders for temporary files, which is root's.
cache_dir()
{
    local folder
    folder=$(sed -n 's/.*--http-fastcgi-temp-path=\([^ ]*\).*/\1/p' <<<"$nginx_built")
    folder=${folder%/*}
    [[ $folder == /* && -d $folder ]] || folder=$output
    printf '%s' "$folder"
}

# The new files, in a server of their own; then in the operator's nginx, if it includes them.
try_site()
{
    local trial=$stage/trial
    cp -r "$stage/site" "$trial" || die "cannot write into $output; check the disk"
    sed -i "s|$output/|$trial/|g" "$trial"/*.conf
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
    nginx -t -e stderr -c "$trial/trial.conf" 2>"$stage/problem" || die "nginx refuses the new files: $(emergency); nothing is changed"
    whole=
    [[ -n $site_file || -n $includes_http$includes_server ]] || return 0
    [[ -n $site_file || -n $includes_http && -n $includes_server ]] || return 0 # half
    if nginx_sees "$stage/site" -t; then
        return
    fi
    grep -q '\[emerg\]' "$stage/problem" && die "nginx refuses its configuration with the new files: $(emergency); nothing is changed"
    whole=1 # it cannot be shown files that are not there: it is asked when they are
}

make_folders()
{
    local socket owner
    owner=$(stat -c %u "$env_file"):$SANDCGI_LISTEN_GROUP
    for socket in "$SANDCGI_LISTEN" "$SANDCGI_HUB" "$SANDCGI_BROKER"; do
        [[ $socket != /* || -d ${socket%/*} ]] || { mkdir -p "${socket%/*}" && chown --reference="$env_file" "${socket%/*}"; }
    done
    mkdir -p "$(dirname "$SANDBOX_ROOT")"
    [[ ! -d $SANDBOX_ROOT ]] || chown "$owner" "$SANDBOX_ROOT"
    ensure_sandbox_root
    chown "$owner" "$SANDBOX_ROOT"
    chmod 0755 "$output"
}

# Beside each file its new one and its present one, so that what follows is renames.
prepare()
{
    local to from server=$output/server.conf read_by_nginx=
    for from in "$stage"/site/*; do
        staged[$output/${from##*/}]=$from
    done
    staged[$config]=$env_file
    for to in "${!staged[@]}"; do
        from=${staged[$to]}
        [[ ! -L $to ]] || { unset "staged[$to]" && to=$(readlink -f -- "$to") && staged[$to]=$from; } # what it leads to
        if cmp -s "$from" "$to" && [[ $(stat -c '%a %u %g' "$from") == "$(stat -c '%a %u %g' "$to")" ]]; then
            unset "staged[$to]"
        else
            prepare_file "$to" "$from"
            [[ $to != "$output"/*.conf ]] || read_by_nginx=1
        fi
    done
    if [[ -e $server && -n $read_by_nginx ]]; then
        staged[$server]=$stage/site/server.conf
        prepare_file "$server" "${staged[$server]}"
        answer_503 | write_file 0644 "$stage/nothing.conf"
    fi
    [[ ! -e $stage/tokens.before ]] || cmp -s "$stage/tokens.before" "$SANDCGI_TOKENS_FILE" || die "tokens were changed meanwhile; call this again; nothing is changed"
}

# A server.conf that needs no other file, and has what http.conf needs of it: of now and of before.
answer_503()
{
    # shellcheck disable=SC2016 # they are nginx's variables
    cat <<END
# sandcgi setup nginx was killed: call it again.
$(grep -hoE 'set \$sandcgi_[a-z_]+' "$output"/*.conf "$stage"/site/*.conf | sort -u | sed 's/$/ "";/')
location ^~ $path/mcp { return 503; }
END
}

# prepare_file TO FROM
prepare_file()
{
    { mkdir -p "$(dirname "$1")" && cp -p "$2" "$1.setup-new"; } || die "cannot write $1; check the disk; nothing is changed"
    [[ ! -e $1 ]] || ln -f "$1" "$1.setup-before" || cp -p "$1" "$1.setup-before" || die "cannot write beside $1; check the disk; nothing is changed"
}

# All or nothing. server.conf needs no other file meanwhile: nginx would start whenever this is killed.
put_in_place()
{
    local to placed=() server=$output/server.conf
    trap '' INT TERM HUP
    [[ ! -e $stage/nothing.conf ]] || place "$server" "$stage/nothing.conf"
    for to in "${!staged[@]}"; do
        [[ $to == "$server" ]] || place "$to" "$to.setup-new"
    done
    [[ -z ${staged[$server]:-} ]] || place "$server" "$server.setup-new"
    [[ -z $whole ]] || nginx -t -e stderr -c "$nginx_conf" 2>"$stage/problem" ||
        { put_back; die "nginx refuses its configuration with the new files: $(emergency); nothing is changed"; }
    trap 'exit 130' INT TERM HUP
}

# place TO FROM
place()
{
    placed+=("$1")
    mv -f "$2" "$1" || { put_back; die "cannot write $1; nothing is changed"; }
}

# The files of put_in_place, as they were; server.conf is the last again.
put_back()
{
    local to
    for to in "${placed[@]}"; do
        [[ $to == "$server" ]] || put_file_back "$to"
    done
    [[ " ${placed[*]} " != *" $server "* ]] || put_file_back "$server"
}

put_file_back()
{
    if [[ ! -e $1.setup-before ]]; then
        rm -f "$1"
    elif [[ ! $1.setup-before -ef $1 ]]; then
        mv -f "$1.setup-before" "$1"
    fi
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
    local reload
    reload=$(reload_command)
    if [[ -n $site_file ]]; then
        say "$site_file has a server block for $server_name. Do: $reload"
    elif [[ -n $includes_http && -n $includes_server ]]; then
        say "nginx includes both files already. Do: $reload"
    elif [[ -z $block$includes_server ]]; then
        say "nginx has no server block for $server_name. Add this one to nginx's configuration, in the block http ($nginx_conf):"
        site_text | sed 's/^/  /'
        say "$(certificate_hint)" "Then do: nginx -t && $reload"
    else
        if [[ -z $includes_http$includes_server ]]; then
            say "Add these two lines to nginx's configuration:"
        else
            say "nginx includes one of the two files. Add the other line to nginx's configuration:"
        fi
        [[ -n $includes_http ]] || printf '  in the block http (%s):\n      include %s;\n' "$nginx_conf" "$output/http.conf"
        [[ -n $includes_server ]] || printf '  in the block server of %s:\n      include %s;\n' "$server_name ($block)" "$output/server.conf"
        say "Then do: nginx -t && $reload"
    fi
}

# The server block is the one that was told, or there is none yet; else say which there are.
check_block()
{
    local known="nginx has these: ${names:-none with a name}"
    [[ -n $server_name ]] || die "--server-name must be the host name of a server block; $known"
    [[ $server_name =~ ^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$ ]] || die "--server-name must be the host name of the server block, such as sandbox.example.org"
    [[ -z $create_site || -z $block ]] || say "nginx has a server block for $server_name ($block): --create-site makes no other"
    [[ -z $block && -z $includes_server ]] || return 0
    if [[ -n $create_site ]]; then
        [[ $dump == *"${nginx_conf%/*}/conf.d/*.conf"* || $dump =~ include[[:space:]]+conf\.d/\*\.conf ]] ||
            die "nginx does not include ${nginx_conf%/*}/conf.d/*.conf, where --create-site would put the server block; without the option its text is printed"
        [[ ! -e ${nginx_conf%/*}/conf.d/sandcgi.conf ]] || die "${nginx_conf%/*}/conf.d/sandcgi.conf is there already, without the name $server_name"
    elif [[ -n $names ]]; then
        die "nginx has no server block for $server_name; $known. Name one of them by --server-name, or have one made by --create-site"
    fi
}

main()
{
    declare -gA staged=()
    program=${SANDCGI_PROGRAM:-sandcgi} log_file=/dev/null site_file=''
    PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # Debian keeps nginx there, and users' paths do not
    config=${SANDCGI_CONFIG:-/etc/sandcgi/sandcgi.conf}
    [[ $* != "nginx --check" ]] || { env_file=$config && check_nginx && exit; }
    take_options "$@"
    ((EUID == 0)) || die "needs root: it writes files that only root may read, and has nginx check them"
    recall_options
    check_nginx
    find_nginx_conf
    make_stage
    read_nginx
    find_nginx_account
    find_block
    check_block
    [[ $tls_port != 443 ]] || tls_port=
    stage_settings
    choose_settings
    check_settings_fit
    run_dir=${SANDCGI_LISTEN%/*}
    [[ $run_dir == /* ]] || run_dir=/
    stage_secrets
    stage_tokens
    stage_site
    ensure_log
    try_site
    [[ -z ${SANDCGI_USER:-} ]] || ensure_account
    make_folders
    prepare
    put_in_place
    say "The files for nginx are in $output, the settings in $config."
    tell_what_to_add
    if [[ $("$program" status --json --config "$config" 2>/dev/null) == *'"startedAt"'* ]]; then # whatever its engine does
        say "The server runs. Have it read the settings: sandcgi reload --config $config (as a service: systemctl reload sandcgi)"
    else
        say "Start the server: sandcgi serve --config $config (as a service: systemctl start sandcgi)"
    fi
    say "MCP endpoint: $PUBLIC_BASE_URL/mcp; the token is MCP_API_TOKEN in $config."
    say "Another token: sandcgi token add --config $config --tenant NAME"
}

main "$@"
