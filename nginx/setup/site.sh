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

# X for every header Mcp-Param-X: the operator's, and those by which an edge finds the node of a call.
param_headers()
{
    printf '%s' "$(setting NGINX_PARAM_HEADERS '')"
    [[ $(setting SANDCGI_ROUTE_HEADERS false) != true ]] || printf ' Conversation Run Sandbox'
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
    socket_for_nginx "$(setting SANDCGI_OAUTH_LISTEN "${SANDCGI_BROKER%/*}/oauth.sock")"
}

# The socket of the process that judges access tokens; empty: static tokens alone.
judge_for_nginx()
{
    [[ -n $(setting SANDCGI_OAUTH '') ]] || return 0
    socket_for_nginx "$(setting SANDCGI_OAUTH_CHECK "${SANDCGI_BROKER%/*}/judge.sock")"
}

# Seconds that nginx waits for a worker: longer than the longest run.
read_timeout()
{
    local max
    max=$(setting SANDBOX_TIMEOUT_MAX 300s)
    max=$(to_seconds "$max") || die "SANDBOX_TIMEOUT_MAX must be a time such as 300s, not '$max'; correct it in $env_file"
    printf '%d' $((max + 120))
}

# render_site FOLDER NAME=VALUE…: fills the templates from the settings and the values given.
render_site()
{
    local folder=$1 signed_urls=1 store=1 timeout
    shift
    timeout=$(read_timeout)
    [[ $(setting SANDBOX_URL_TTL 0) =~ [1-9] ]] || signed_urls=
    [[ -n $(setting SANDBOX_STORE '') ]] || store=
    "$project/nginx/render.sh" "$folder" \
        SANDBOX_ROOT="$SANDBOX_ROOT" BACKEND="$(socket_for_nginx "$SANDCGI_LISTEN")" HUB="$(socket_for_nginx "$SANDCGI_HUB")" \
        JUDGE="$(judge_for_nginx)" PUBLIC_URL="$PUBLIC_BASE_URL" \
        OAUTH_BACKEND="$(oauth_backend)" \
        READ_TIMEOUT="$timeout" SIGNED_URLS="$signed_urls" STORE="$store" \
        BODY_MAX="$(setting SANDCGI_MAX_BODY 16m)" UPLOAD_MAX="$(setting SANDBOX_UPLOAD_MAX "$(setting SANDBOX_MAX_UPLOAD_BYTES 2g)")" \
        RATE="$(setting NGINX_RATE 50)" BURST="$(setting NGINX_BURST 200)" CONNS="$(setting NGINX_CONNS 32)" \
        REAL_IP_FROM="$(setting NGINX_REAL_IP_FROM '')" REAL_IP_HEADER="$(setting NGINX_REAL_IP_HEADER X-Forwarded-For)" \
        UPLOAD_CONNS="$(setting NGINX_UPLOAD_CONNS 16)" STREAMS="$(setting SANDCGI_MAX_STREAMS 2000)" \
        HOSTS="$(public_host) $(setting SANDCGI_ALLOWED_HOSTS '')" \
        ORIGINS="$(public_origin) $(setting SANDCGI_ALLOWED_ORIGINS '')" PARAM_HEADERS="$(param_headers)" \
        NETWORKS="$(setting NGINX_NETWORKS '')" NEVER_REUSE="$(setting NGINX_NEVER_REUSE '')" \
        TOOLSETS="$(setting NGINX_TOOLSETS '')" PROFILES="$(setting NGINX_PROFILES all)" "$@" ||
        die "nginx's configuration could not be made; correct the NGINX_… settings in $env_file"
}
