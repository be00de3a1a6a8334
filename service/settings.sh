#!/bin/sh
# Makes the settings of a service, with random secrets: settings.sh FILE GROUP FRONT_SECRET [PUBLIC_BASE_URL]
# FILE is readable for GROUP, FRONT_SECRET (SANDCGI_SECRET_FILE) for root alone. What exists stays as it is.
set -eu

templates=$(cd "$(dirname "$0")" && pwd) # "make install" puts the place of the installed ones here

die()
{
    printf 'settings.sh: %s\n' "$1" >&2
    exit 1
}

random_hex()
{
    digits=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
    [ ${#digits} -eq 64 ] || die "no randomness from /dev/urandom; without it no secrets can be made"
    printf '%s' "$digits"
}

# write_new FILE MODE: standard input, in one step.
write_new()
{
    new=$(mktemp "$1.XXXXXX") || die "cannot write beside $1"
    cat >"$new"
    chmod "$2" "$new"
    mv -f "$new" "$1"
}

[ $# -ge 3 ] || die "usage: settings.sh FILE GROUP FRONT_SECRET [PUBLIC_BASE_URL]"
file=$1 group=$2 front_secret=$3 url=${4:-}
umask 077
if [ ! -e "$file" ]; then
    file_secret=$(random_hex)
    token=$(random_hex)
    sed -e "s|^FILE_SECRET=.*|FILE_SECRET=$file_secret|" -e "s|^MCP_API_TOKEN=.*|MCP_API_TOKEN=$token|" \
        -e "s|^SANDCGI_SECRET_FILE=.*|SANDCGI_SECRET_FILE=$front_secret|" \
        ${url:+-e "s|^PUBLIC_BASE_URL=.*|PUBLIC_BASE_URL=$url|"} "$templates/sandcgi.conf" | write_new "$file" 0640
    chgrp "$group" "$file"
fi
if [ ! -e "$front_secret" ]; then
    random_hex | write_new "$front_secret" 0600
fi
