# shellcheck shell=bash disable=SC2034,SC2154 # the files of this folder share variables
# The two services, sandcgi and nginx: requirements, start, stop, and whether they are up to date.

readonly drain_seconds=20

ensure_account()
{
    local account=${SANDCGI_USER:-}
    ((EUID == 0)) || return 0
    if ! getent passwd "$account" >/dev/null; then
        useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$account" >>"$log_file" 2>&1 ||
            die "the account '$account' for the workers could not be made; see $log_file, or set SANDCGI_USER in $env_file"
        say "  created the system account '$account' for the workers"
    fi
}

# make_disk IMAGE: with its file system mounted on SANDBOX_ROOT. All of it is allocated: a file with holes would promise room
# that the disk may not have.
make_disk()
{
    local new=$1.new
    [[ $SANDCGI_DISK =~ ^[1-9][0-9]{0,5}[mMgG]$ ]] || die "SANDCGI_DISK must be a size such as 20g, not '$SANDCGI_DISK'"
    rm -f "$new"
    if ! (umask 077 && fallocate -l "${SANDCGI_DISK^^}" "$new") 2>>"$log_file"; then
        rm -f "$new"
        die "there is no room for the file $new of $SANDCGI_DISK, or its file system cannot allocate it; set a smaller SANDCGI_DISK"
    fi
    if ! mkfs.ext4 -q -F -m 0 -O quota -E quotatype=usrquota,nodiscard "$new" >>"$log_file" 2>&1 || ! mount_disk "$new"; then
        rm -f "$new"
        die "this kernel cannot mount ext4 with user quotas (see $log_file); start without SANDCGI_DISK"
    fi
    mv "$new" "$1"
}

mount_disk()
{
    mount -o loop,usrquota,nodev,nosuid "$1" "$SANDBOX_ROOT" >>"$log_file" 2>&1
}

# A file system of its own for SANDBOX_ROOT, whose user quotas hold programs below SANDBOX_QUOTA. It is made when
# SANDCGI_DISK asks for it, and mounted at each start once it is there. Arguments: for install, the access to it.
ensure_disk()
{
    local image=$SANDBOX_ROOT.ext4
    [[ -n ${SANDCGI_DISK:-} || -e $image ]] || return 0
    ((EUID == 0)) || die "a file system for SANDBOX_ROOT (SANDCGI_DISK) needs root"
    ! mountpoint -q "$SANDBOX_ROOT" || return 0
    [[ -z $(ls -A "$SANDBOX_ROOT") ]] ||
        die "$SANDBOX_ROOT holds files, which $image would hide; stop sandcgi, move them away, call start.sh, move them back"
    if [[ ! -e $image ]]; then
        make_disk "$image"
        install -d "$@" "$SANDBOX_ROOT"
        say "  SANDBOX_ROOT is a file system of $SANDCGI_DISK with user quotas, in $image"
    elif ! mount_disk "$image"; then
        die "$image cannot be mounted on $SANDBOX_ROOT; see $log_file"
    fi
}

# Closed to all accounts but its owner's; nginx's group passes through. The server sees to both at its start, too.
ensure_sandbox_root()
{
    local access=(-m 0700)
    [[ -z $nginx_user ]] || access=(-m 0710 -g "$SANDCGI_LISTEN_GROUP")
    if [[ ! -d $SANDBOX_ROOT ]]; then
        install -d "${access[@]}" "$SANDBOX_ROOT" || die "cannot make SANDBOX_ROOT=$SANDBOX_ROOT; check its parent folder and SANDCGI_LISTEN_GROUP"
    fi
    ensure_disk "${access[@]}"
    [[ -n $nginx_user ]] || return 0
    setpriv --reuid "${nginx_user% *}" --regid "${nginx_user#* }" --clear-groups test -x "$SANDBOX_ROOT" -a -x "$run_dir" ||
        die "nginx's account ${nginx_user% *} cannot reach $SANDBOX_ROOT or $run_dir; do chmod o+x on their parent folders, or choose other folders"
}

# nginx must send the secret that the workers expect: both files are written together, at every start of sandcgi.
write_front_secret()
{
    local secret
    secret=$(random_hex)
    printf '%s\n' "$secret" | write_file 0600 "$SANDCGI_SECRET_FILE"
    printf 'fastcgi_param SANDCGI_SECRET "%s";\n' "$secret" | write_file 0600 "$run_dir/front-secret.conf"
}

# What nginx checks the URLs of files with.
write_file_key()
{
    local key
    key=$(run_server file-key)
    printf '%s\n' "$key" | write_file 0600 "$run_dir/file-key.conf"
}

# The token of .env belongs to the tenant "default", beside those that sandcgi token added; an earlier one of .env is taken away.
sync_token()
{
    local tokens=("$program" token --file "$tokens_file" --no-reload) status=0 mark noted said mark_file=${tokens_file%/*}/env-token.mark
    mark=$(printf '%s' "$api_token" | sha256sum | cut -c1-12)
    noted=$(cat "$mark_file" 2>/dev/null) || noted=
    if [[ -n $noted && $noted != "$mark" ]]; then
        "${tokens[@]}" revoke "$noted" 2>>"$log_file" || true
    fi
    said=$("${tokens[@]}" --token-stdin add <<<"$api_token" 2>&1 >/dev/null) || status=$?
    printf '%s\n' "$said" >>"$log_file"
    if ((status > 0)); then
        [[ $said != *"a token is "* ]] || die "MCP_API_TOKEN in $env_file cannot be used; put in what this prints: openssl rand -hex 32"
        die "MCP_API_TOKEN was not added to nginx's tokens: ${said##*sandcgi: }"
    fi
    printf '%s\n' "$mark" | write_file 0600 "$mark_file"
}

render_nginx()
{
    check_nginx
    render_site "$state/nginx" RUN_DIR="$run_dir" LOG_DIR="$log_dir" TMP_DIR="$state/nginx/tmp" CACHE_DIR="$state/nginx/tmp" SECRET_CONF="$run_dir/front-secret.conf" \
        FILE_KEY_CONF="$run_dir/file-key.conf" TOKENS_FILE="$tokens_file" CERT="$cert" CERT_KEY="$cert_key" USER="$nginx_user" \
        BIND="$(listen_addresses)" HTTPS_PORT="$https_port" HTTP_PORT="$http_port" PAGE_DIR="$page_dir"
}

# Those of the settings, and localhost, where start.sh itself asks.
listen_addresses()
{
    local listed
    listed=$(setting NGINX_BIND '')
    tr -s ', ' '\n' <<<"$(loopback_addresses) $listed" | LC_ALL=C sort -u | xargs
}

# "localhost" means ::1 first on many machines.
loopback_addresses()
{
    printf '127.0.0.1'
    if grep -qs '^0\{31\}1 ' /proc/net/if_inet6; then
        printf ' [::1]'
    fi
}

nginx_hash()
{
    sha256sum "$state"/nginx/*.conf "$tokens_file" "$run_dir/front-secret.conf" "$run_dir/file-key.conf" "$cert" 2>/dev/null | sha256sum
}

sandcgi_hash()
{
    sha256sum "$binary" "$env_file" | sha256sum
}

environment_hash()
{
    server_environment | sha256sum
}

sandcgi_pid()
{
    pid_from "$sandcgi_pid_file" sandcgi "$env_file"
}

nginx_pid()
{
    pid_from "$nginx_pid_file" nginx "$state/nginx/nginx.conf"
}

# Processes whose master was killed: they hold sockets and ports, and use an old secret.
# An nginx worker is recognized by our log file, a sandcgi by its command line.
stray_processes()
{
    local proc name nginx_runs=no sandcgi_runs=no
    ! nginx_pid >/dev/null || nginx_runs=yes
    ! sandcgi_pid >/dev/null || sandcgi_runs=yes
    for proc in /proc/[1-9]*; do
        name=
        { read -r name <"$proc/comm"; } 2>/dev/null || continue
        if [[ $name == nginx && $nginx_runs == no ]]; then
            find "$proc/fd" -lname "$log_dir/nginx-error.log" -print -quit 2>/dev/null | grep -q . || continue
        elif [[ $name == sandcgi* && $sandcgi_runs == no ]]; then
            tr '\0' ' ' <"$proc/cmdline" 2>/dev/null | grep -qF -- "$binary serve --config $env_file " || continue
        else
            continue
        fi
        printf '%s\n' "${proc#/proc/}"
    done
}

end_strays()
{
    local pids pid
    mapfile -t pids < <(stray_processes)
    ((${#pids[@]})) || return 0
    detail "  ending ${#pids[@]} processes whose master was killed"
    kill -TERM "${pids[@]}" 2>/dev/null || true
    for pid in "${pids[@]}"; do
        wait_gone 10 "$pid" || kill -KILL "$pid" 2>/dev/null || true
    done
}

# The last error in a service's log, for the error message.
last_complaint()
{
    local line
    line=$(tail -n 50 "$1" 2>/dev/null | grep -E '^sandcgi: |^(error|warn) ' | tail -n 1) || line=$(tail -n 1 "$1" 2>/dev/null)
    printf '%s' "${line#sandcgi: }"
}

port_answers()
{
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Our own nginx may already listen on some of them.
check_ports_free()
{
    local port mine
    mine=$(cat "$run_dir/ports" 2>/dev/null) || mine=
    nginx_pid >/dev/null || mine=
    [[ $https_port != "$http_port" ]] || die "NGINX_HTTPS_PORT and NGINX_HTTP_PORT are the same; correct one of them in $env_file"
    for port in "$https_port" "$http_port"; do
        if [[ " $mine " != *" $port "* ]] && port_answers "$port"; then
            die "port $port is in use by another program; stop that one, or choose another port: NGINX_HTTPS_PORT and NGINX_HTTP_PORT in $env_file"
        fi
    done
}

check_settings()
{
    local problem
    [[ -e $SANDCGI_SECRET_FILE ]] || write_front_secret # check looks for it; each start makes another
    if ! problem=$(run_server check 2>&1 >/dev/null); then
        problem=$(sed -e '/^sandcgi: note: /d' -e 's/^sandcgi: //' <<<"$problem")
        die "$problem; correct $env_file"
    fi
}

# run_server COMMAND [OPTION], with the environment that it may have
run_server()
{
    local environment
    mapfile -d '' -t environment < <(server_environment)
    exec env -i "${environment[@]}" "$binary" "$@" --config "$env_file"
}

start_sandcgi()
{
    local pid
    write_front_secret
    (
        exec >>"$sandcgi_log" 2>&1 </dev/null 9>&-
        cd /
        mapfile -d '' -t environment < <(server_environment)
        exec setsid env -i "${environment[@]}" "$binary" serve --config "$env_file"
    ) &
    pid=$!
    disown # its end is for the log, not for the shell to report
    printf '%s\n' "$pid" | write_file 0644 "$sandcgi_pid_file"
    wait_until 10 sandcgi_listens "$pid" ||
        die "sandcgi did not start: $(last_complaint "$sandcgi_log"); the log is $sandcgi_log"
    note_sandcgi
    detail "  started sandcgi (process $pid)"
}

# What runs: another program or other settings are taken up by a reload, another environment by a restart.
note_sandcgi()
{
    sandcgi_hash | write_file 0600 "$run_dir/sandcgi.hash"
    environment_hash | write_file 0600 "$run_dir/environment.hash"
}

sandcgi_is_noted()
{
    [[ $(sandcgi_hash 2>/dev/null) == "$(cat "$run_dir/sandcgi.hash" 2>/dev/null)" ]] && environment_is_noted
}

environment_is_noted()
{
    [[ $(environment_hash) == "$(cat "$run_dir/environment.hash" 2>/dev/null)" ]]
}

# The new program and settings, without a refused call: running programs, sessions and sandboxes stay.
reload_sandcgi()
{
    local said
    mapfile -d '' -t environment < <(server_environment)
    said=$(env -i "${environment[@]}" "$binary" reload --config "$env_file" 2>&1 >/dev/null 9>&-) ||
        die "sandcgi goes on as before: $(printf '%s\n' "$said" | tail -n 1)"
    note_sandcgi
    say "  sandcgi (process $1) has taken up the program and the settings"
}

# True also when it has ended: the caller finds out next.
sandcgi_listens()
{
    [[ -d /proc/$1 ]] || return 1
    [[ $SANDCGI_LISTEN != /* ]] || [[ -S $SANDCGI_LISTEN ]]
}

stop_sandcgi()
{
    local pid
    pid=$(sandcgi_pid) || return 0
    kill -TERM "$pid"
    if ! wait_gone "$drain_seconds" "$pid"; then
        say "  programs still run after $drain_seconds s; killing them"
        kill -TERM "$pid" 2>/dev/null || true
        wait_gone 15 "$pid" || kill -KILL "$pid" 2>/dev/null || true
    fi
    rm -f "$sandcgi_pid_file" "$run_dir/sandcgi.hash" "$run_dir/environment.hash"
    say "  stopped sandcgi"
}

# Starts nginx, or reloads its configuration without dropping calls.
start_nginx()
{
    local nginx=(nginx -e "$log_dir/nginx-error.log" -c "$state/nginx/nginx.conf") pid
    "${nginx[@]}" -t >>"$log_file" 2>&1 9>&- ||
        die "nginx refuses its configuration: $(grep -o '\[emerg\].*' "$log_file" | tail -n 1); see $log_file"
    if pid=$(nginx_pid); then
        kill -HUP "$pid"
        detail "  nginx (process $pid) has reloaded its configuration"
    else
        "${nginx[@]}" >>"$log_file" 2>&1 </dev/null 9>&- || die "nginx did not start; see $log_dir/nginx-error.log and $log_file"
        wait_until 10 nginx_pid >/dev/null || die "nginx did not start; see $log_dir/nginx-error.log"
        detail "  started nginx (process $(nginx_pid))"
    fi
    printf '%s %s\n' "$https_port" "$http_port" | write_file 0644 "$run_dir/ports"
    nginx_hash | write_file 0600 "$run_dir/nginx.hash"
}

stop_nginx()
{
    local pid
    pid=$(nginx_pid) || return 0
    kill -QUIT "$pid"
    if ! wait_gone "$drain_seconds" "$pid"; then
        kill -TERM "$pid" 2>/dev/null || true
        wait_gone 5 "$pid" || say "  nginx (process $pid) does not stop"
    fi
    rm -f "$run_dir/ports" "$run_dir/nginx.hash"
    say "  stopped nginx"
}

# True when something was started or changed.
bring_up_services()
{
    local changed=1 pid
    if ! pid=$(sandcgi_pid) || ! environment_is_noted || [[ ! -f $run_dir/front-secret.conf ]]; then
        stop_sandcgi
        start_sandcgi
        changed=0
    elif ! sandcgi_is_noted; then
        reload_sandcgi "$pid"
        changed=0
    fi
    if ! nginx_pid >/dev/null || [[ $(nginx_hash) != "$(cat "$run_dir/nginx.hash" 2>/dev/null)" ]]; then
        start_nginx
        changed=0
    fi
    return "$changed"
}
