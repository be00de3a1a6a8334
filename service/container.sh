#!/bin/sh
# The start of the server's container: settings and secrets at the first time, the files of nginx's container, the server.
# /etc/sandcgi and /run/sandcgi are volumes that nginx's container has, too.
set -eu

settings=/etc/sandcgi/sandcgi.conf
secret=/etc/sandcgi/front-secret
site=/etc/sandcgi/nginx
scripts=/usr/libexec/sandcgi
# shellcheck source=service/cluster.sh
. "$scripts/service/cluster.sh"

# value NAME: a setting as it counts.
value()
{
    printf '%s\n' "$values" | sed -n "s/^$1=//p"
}

# seconds TIME
seconds()
{
    case $1 in
    *ms) echo 1 ;;
    *m) echo $((${1%m} * 60)) ;;
    *h) echo $((${1%h} * 3600)) ;; # "settings --values" has no longer unit
    *) echo "${1%s}" ;;
    esac
}

umask 022
"$scripts/service/settings.sh" "$settings" "$secret"
take_secrets
given=${PUBLIC_BASE_URL:-}
split_url
[ -n "$given" ] || note_url "$settings"
# The machine's name as the orchestrator has it; an edge makes the same node's name of it.
if [ -n "${MACHINE_NAME:-}" ]; then
    SANDCGI_NODE=$(sandcgi nodes --name "$MACHINE_NAME")
    export SANDCGI_NODE
fi
values=$(sandcgi settings --values --config "$settings")
page=/usr/share/sandcgi/page # in nginx's container
[ "$(value NGINX_PAGE)" != false ] || page=
oauth=''
judge=''
[ "$(value SANDCGI_OAUTH)" != builtin ] || oauth=unix:/run/sandcgi/oauth.sock
[ -z "$(value SANDCGI_OAUTH)" ] || judge=unix:/run/sandcgi/judge.sock
signed=''
case $(value SANDBOX_URL_TTL) in *[1-9]*) signed=1 ;; esac
store=''
[ -z "$(value SANDBOX_STORE)" ] || store=1

# REAL_IP_HEADER: the web server in front alone can connect, from an address of Docker's, and says there who asks.
mkdir -p "$site"
"$scripts/nginx/render.sh" "$site" BACKEND=unix:/run/sandcgi/fastcgi.sock HUB=unix:/run/sandcgi/hub.sock LOG_DIR=/var/log/nginx ACCESS_LOG=/dev/stdout \
    OAUTH_BACKEND="$oauth" JUDGE="$judge" PUBLIC_URL="$PUBLIC_BASE_URL" \
    SECRET_CONF="$site/front-secret.conf" FILE_KEY_CONF="$site/file-key.conf" TOKENS_FILE="$site/tokens.map" \
    REAL_IP_FROM="${REAL_IP_HEADER:+10.0.0.0/8 172.16.0.0/12 192.168.0.0/16}" REAL_IP_HEADER="${REAL_IP_HEADER:-X-Forwarded-For}" \
    STORE="$store" SIGNED_URLS="$signed" UPLOAD_MAX="$(value SANDBOX_UPLOAD_MAX)" \
    READ_TIMEOUT=$(($(seconds "$(value SANDBOX_TIMEOUT_MAX)") + 120)) \
    CACHE_DIR=/tmp UPLOADS=stream PAGE_DIR="$page" PREFIX="$path" PROFILES="$(value NGINX_PROFILES)" RATE="$(value NGINX_RATE)" BURST=$((4 * $(value NGINX_RATE))) \
    HOSTS="${host%:[0-9]*} $(value SANDCGI_ALLOWED_HOSTS)" ORIGINS="$origin $(value SANDCGI_ALLOWED_ORIGINS)"
umask 077
printf 'fastcgi_param SANDCGI_SECRET "%s";\n' "$(cat "$secret")" | write_file 0600 "$site/front-secret.conf"
key=$(sandcgi file-key --config "$settings")
printf '%s\n' "$key" | write_file 0600 "$site/file-key.conf"
put_tokens "$site/tokens.map" "${MCP_API_TOKEN:-$(sandcgi settings --get MCP_API_TOKEN --config "$settings")}"
http_block "$site/container.conf" "include $site/http.conf;" "access_log /dev/stdout sandcgi;" \
    "server { listen 8080; listen [::]:8080; include $site/server.conf; location / { return 404; } }"
exec sandcgi serve --config "$settings"
