#!/bin/sh
# The start of the server's container: settings and secrets at the first time, the files of nginx's container, the server.
# /etc/sandcgi and /run/sandcgi are volumes that nginx's container has, too.
set -eu

settings=/etc/sandcgi/sandcgi.conf
secret=/etc/sandcgi/front-secret
site=/etc/sandcgi/nginx
scripts=/usr/libexec/sandcgi

umask 022
"$scripts/service/settings.sh" "$settings" root "$secret"
: "${PUBLIC_BASE_URL:=http://localhost:8080}"
export PUBLIC_BASE_URL
rest=${PUBLIC_BASE_URL#*://}
origin=${PUBLIC_BASE_URL%%://*}://${rest%%/*}
path=${PUBLIC_BASE_URL#"$origin"}
host=${rest%%/*}
page=/usr/share/sandcgi/page # in nginx's container
! grep -q '^NGINX_PAGE=false' "$settings" || page=
: "${SANDCGI_OAUTH=$(sed -n 's/^SANDCGI_OAUTH=//p' "$settings" | tail -n 1)}"
oauth=''
judge=''
[ "$SANDCGI_OAUTH" != builtin ] || oauth=unix:/run/sandcgi/oauth.sock
[ -z "$SANDCGI_OAUTH" ] || judge=unix:/run/sandcgi/judge.sock

# REAL_IP_HEADER: the web server in front alone can connect, from an address of Docker's, and says there who asks.
mkdir -p "$site"
"$scripts/nginx/render.sh" "$site" BACKEND=unix:/run/sandcgi/fastcgi.sock HUB=unix:/run/sandcgi/hub.sock LOG_DIR=/var/log/nginx \
    OAUTH_BACKEND="$oauth" JUDGE="$judge" CACHE_DIR=/var/cache/nginx PUBLIC_URL="$PUBLIC_BASE_URL" \
    SECRET_CONF="$site/front-secret.conf" FILE_KEY_CONF="$site/file-key.conf" TOKENS_FILE="$site/tokens.map" \
    REAL_IP_FROM="${REAL_IP_HEADER:+10.0.0.0/8 172.16.0.0/12 192.168.0.0/16}" REAL_IP_HEADER="${REAL_IP_HEADER:-X-Forwarded-For}" \
    UPLOADS=stream PAGE_DIR="$page" HOSTS="${host%:[0-9]*}" ORIGINS="$origin" PREFIX="$path"
umask 077
printf 'fastcgi_param SANDCGI_SECRET "%s";\n' "$(cat "$secret")" >"$site/front-secret.conf"
sandcgi file-key --config "$settings" >"$site/file-key.conf"
sed -n 's/^MCP_API_TOKEN=//p' "$settings" | sandcgi token add --file "$site/tokens.map" --no-reload --token-stdin

cat >"$site/container.conf" <<END
user www-data;
worker_processes auto;
pid /tmp/nginx.pid;
error_log stderr warn;
events { worker_connections 8192; }
http {
    client_body_temp_path /tmp/body;
    fastcgi_temp_path /tmp/fastcgi;
    proxy_temp_path /tmp/proxy;
    scgi_temp_path /tmp/scgi;
    uwsgi_temp_path /tmp/uwsgi;
    access_log off;
    server_tokens off;
    sendfile on;
    include $site/http.conf;
    server {
        listen 8080;
        listen [::]:8080;
        include $site/server.conf;
        location / { return 404; }
    }
}
END
exec sandcgi serve --config "$settings"
