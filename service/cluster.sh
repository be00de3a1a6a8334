#!/bin/sh
# What the containers of a cluster's node and edge have in common; container.sh and edge.sh read it.

# shellcheck source=service/write_file.sh disable=SC2154 # the scripts that read this one set it
. "$scripts/service/write_file.sh"

die()
{
    printf 'sandcgi: %s\n' "$1" >&2
    exit 1
}

# Secrets as the orchestrator has them: each file that is called as a setting (FILE_SECRET, …) is that setting.
take_secrets()
{
    for file in "${SECRETS_DIR:-/run/secrets}"/*; do
        name=${file##*/}
        case $name in
        '*' | *[!A-Z_]*) continue ;;
        esac
        value=$(cat "$file") || die "the secret $name cannot be read"
        export "$name=$value"
    done
}

# published_url BIND: of the port that Compose publishes at [ADDRESS:]PORT, as this machine reaches it.
published_url()
{
    address=${1%:*}
    case $address in
    "$1" | 0.0.0.0 | 127.0.0.1 | '[::]' | '[::1]') address=localhost ;;
    esac
    printf 'http://%s:%s' "$address" "${1##*:}"
}

# note_url FILE: PUBLIC_BASE_URL in these settings, for commands that others start in this container.
note_url()
{
    settings_text=$(sed '/^PUBLIC_BASE_URL=/d' "$1")
    printf '%s\n' "$settings_text" "PUBLIC_BASE_URL=$PUBLIC_BASE_URL" | write_file 0600 "$1"
}

# Sets origin, path and host from PUBLIC_BASE_URL; of Compose's variables where there is none.
# shellcheck disable=SC2034 # for the scripts that read this one
split_url()
{
    : "${PUBLIC_BASE_URL:=${PUBLIC_URL:-$(published_url "${BIND:-8080}")}}"
    export PUBLIC_BASE_URL
    rest=${PUBLIC_BASE_URL#*://}
    origin=${PUBLIC_BASE_URL%%://*}://${rest%%/*}
    path=${PUBLIC_BASE_URL#"$origin"}
    host=${rest%%/*}
}

# put_tokens FILE TOKEN: the secret tokens.map, which "sandcgi token" has made, and the token besides.
put_tokens()
{
    if [ -e "${SECRETS_DIR:-/run/secrets}/tokens.map" ]; then
        write_file 0600 "$1" <"${SECRETS_DIR:-/run/secrets}/tokens.map"
    fi
    [ -z "$2" ] || printf '%s' "$2" | sandcgi token add --file "$1" --no-reload --token-stdin
    [ -e "$1" ] || : >"$1"
}

# The http block around a site: http_block FILE LINE…, of which the lines are those of its server.
http_block()
{
    file=$1
    shift
    {
        cat <<END
user www-data;
worker_processes auto;
worker_rlimit_nofile 65536;
pid /tmp/nginx.pid;
error_log stderr warn;
events { worker_connections 8192; }
http {
    client_body_temp_path /tmp/body;
    fastcgi_temp_path /tmp/fastcgi;
    proxy_temp_path /tmp/proxy;
    scgi_temp_path /tmp/scgi;
    uwsgi_temp_path /tmp/uwsgi;
    server_tokens off;
    sendfile on;
END
        printf '    %s\n' "$@"
        echo '}'
    } | write_file 0600 "$file"
}
