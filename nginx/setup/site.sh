# shellcheck shell=bash disable=SC2034,SC2154 # the files of this folder share variables
# The site of nginx from the settings: what start.sh's own nginx and an existing one have in common.

readonly oldest_nginx=1.20 # the first stable one with the option -e

# is_older VERSION OTHER
is_older()
{
    [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]
}

check_nginx()
{
    local built version
    have nginx || die "nginx is missing: install it (Debian: apt-get install nginx)"
    built=$(nginx -V 2>&1)
    version=$(sed -n 's|^nginx version: [a-z]*/\([0-9][0-9.]*\).*|\1|p' <<<"$built")
    [[ -z $version ]] || ! is_older "$version" "$oldest_nginx" ||
        die "this nginx is version $version, which is too old: install $oldest_nginx or later (https://nginx.org/en/linux_packages.html)"
    [[ $built == *http_secure_link_module* ]] ||
        die "this nginx lacks the module secure_link, which checks the URLs of files: install the package nginx-extras, or nginx 1.22 or later"
    [[ $built == *http_auth_request_module* ]] ||
        die "this nginx lacks the module auth_request, which checks the links of uploads: install the package nginx-extras, or nginx 1.22 or later"
    [[ -z $(setting NGINX_REAL_IP_FROM '') || $built == *http_realip_module* ]] ||
        die "this nginx lacks the module realip, which NGINX_REAL_IP_FROM needs: install the package nginx-extras, or take the setting away"
}

# The scheme and host of the public URL.
public_origin()
{
    [[ $PUBLIC_BASE_URL =~ ^(https?://[^/]+) ]] && printf '%s' "${BASH_REMATCH[1]}"
}

# Its host, without a port.
public_host()
{
    local host=${PUBLIC_BASE_URL#*://}
    host=${host%%/*}
    [[ $host == \[*\] ]] || host=${host%:*}
    printf '%s' "$host"
}

# Its path, without a slash at the end.
public_path()
{
    local path=${PUBLIC_BASE_URL#*://}
    [[ $path == */* ]] || return 0
    path=/${path#*/}
    while [[ $path == */ ]]; do
        path=${path%/}
    done
    printf '%s' "$path"
}

# A socket as nginx writes it.
socket_for_nginx()
{
    [[ $1 != /* ]] || printf unix:
    printf '%s' "$1"
}

# The authorization server's socket as nginx writes it; empty: there is none.
oauth_backend()
{
    [[ $(setting SANDCGI_OAUTH '') == builtin ]] || return 0
    socket_for_nginx "${SANDCGI_BROKER%/*}/oauth.sock"
}

# The socket of the process that judges access tokens; empty: static tokens alone.
judge_for_nginx()
{
    [[ -n $(setting SANDCGI_OAUTH '') ]] || return 0
    socket_for_nginx "${SANDCGI_BROKER%/*}/judge.sock"
}

# Seconds that nginx waits for a worker: longer than the longest run.
read_timeout()
{
    printf '%d' $(($(to_seconds "${values[SANDBOX_TIMEOUT_MAX]}") + 120))
}

# render_site FOLDER NAME=VALUE…: fills the templates from the settings and the values given.
render_site()
{
    local folder=$1 signed_urls=1 store=1
    shift
    load_values
    [[ ${values[SANDBOX_URL_TTL]} =~ [1-9] ]] || signed_urls=
    [[ -n ${values[SANDBOX_STORE]} ]] || store=
    "$project/nginx/render.sh" "$folder" \
        SANDBOX_ROOT="$SANDBOX_ROOT" BACKEND="$(socket_for_nginx "$SANDCGI_LISTEN")" HUB="$(socket_for_nginx "$SANDCGI_HUB")" \
        JUDGE="$(judge_for_nginx)" PUBLIC_URL="$PUBLIC_BASE_URL" \
        OAUTH_BACKEND="$(oauth_backend)" \
        READ_TIMEOUT="$(read_timeout)" SIGNED_URLS="$signed_urls" STORE="$store" UPLOAD_MAX="${values[SANDBOX_UPLOAD_MAX]}" \
        RATE="${values[NGINX_RATE]}" BURST=$((4 * ${values[NGINX_RATE]})) \
        REAL_IP_FROM="${values[NGINX_REAL_IP_FROM]}" REAL_IP_HEADER="${values[NGINX_REAL_IP_HEADER]}" \
        HOSTS="$(public_host) ${values[SANDCGI_ALLOWED_HOSTS]}" \
        ORIGINS="$(public_origin) ${values[SANDCGI_ALLOWED_ORIGINS]}" PROFILES="${values[NGINX_PROFILES]}" "$@" ||
        die "nginx's configuration could not be made, see above; a setting NGINX_… is one of $env_file"
}
