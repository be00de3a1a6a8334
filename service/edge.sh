#!/bin/sh
# The start of an edge's container: nginx in front of the nodes, and the list of them.
#   PUBLIC_BASE_URL   URL that clients see
#   EDGE_NODES     the words of "sandcgi nodes" that say where the nodes are known, such as: --from swarm --service sandcgi_front
#   secrets           SANDCGI_EDGE_SECRET; MCP_API_TOKEN or tokens.map; cert.pem and key.pem: HTTPS at port 8443, too
set -eu

site=/etc/sandcgi/nginx
nodes=/etc/sandcgi/nodes.conf
scripts=/usr/libexec/sandcgi
secrets=${SECRETS_DIR:-/run/secrets}
# shellcheck source=service/cluster.sh
. "$scripts/service/cluster.sh"

# follow [--watch --reload COMMAND]: the list of the nodes.
follow()
{
    # shellcheck disable=SC2086 # it is several words
    sandcgi nodes $EDGE_NODES --render "$nodes" "$@"
}

take_secrets
split_url
[ -n "${EDGE_NODES:-}" ] || die "EDGE_NODES is empty: say where the nodes are known, such as --from swarm --service sandcgi_front"
[ -n "${SANDCGI_EDGE_SECRET:-}" ] || die "the secret SANDCGI_EDGE_SECRET is missing: without it the nodes believe no edge"
umask 022
mkdir -p "$site"
"$scripts/nginx/render.sh" "$site" NODES_FILE="$nodes" EDGE_SECRET_CONF="$site/edge-secret.conf" LOG_DIR=/var/log/nginx ACCESS_LOG=/dev/stdout \
    PUBLIC_URL="$PUBLIC_BASE_URL" TOKENS_FILE="$site/tokens.map" PAGE_DIR=/usr/share/sandcgi/page \
    REAL_IP_FROM="${REAL_IP_FROM:-}" REAL_IP_HEADER="${REAL_IP_HEADER:-X-Forwarded-For}" \
    CACHE_DIR=/tmp JUDGE="${SANDCGI_OAUTH:+the nodes}" HOSTS="${host%:[0-9]*}" ORIGINS="$origin" PREFIX="$path"
umask 077
# shellcheck disable=SC2016 # it is nginx's variable
printf 'set $sandcgi_edge_secret "%s";\n' "$SANDCGI_EDGE_SECRET" | write_file 0600 "$site/edge-secret.conf"
put_tokens "$site/tokens.map" "${MCP_API_TOKEN:-}"
tls=''
[ ! -e "$secrets/cert.pem" ] ||
    tls="listen 8443 ssl; ssl_certificate $secrets/cert.pem; ssl_certificate_key $secrets/key.pem; ssl_session_cache shared:sandcgi_tls:4m;"
http_block "$site/container.conf" "include $site/http.conf;" "include $site/edge_http.conf;" "access_log /dev/stdout sandcgi;" \
    "server { listen 8080; $tls include $site/edge.conf; location / { return 404; } }"
unset SANDCGI_EDGE_SECRET MCP_API_TOKEN
until follow; do # nginx does not start without a node
    sleep 2
done
while :; do
    follow --watch --reload "nginx -c $site/container.conf -s reload" || sleep 1
done &
exec nginx -c "$site/container.conf" -g 'daemon off;'
