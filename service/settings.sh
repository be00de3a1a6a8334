#!/bin/sh
# Makes a settings file with random secrets, for the package, "make install", Compose and start.sh:
# settings.sh FILE FRONT_SECRET [TEMPLATE [NAME=VALUE…]]
# FILE is TEMPLATE with these values, FRONT_SECRET (SANDCGI_SECRET_FILE; empty: none) a secret. Both are for their owner alone.
# What exists stays as it is.
set -eu

# shellcheck source=service/write_file.sh
. "$(dirname "$0")/write_file.sh"
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

[ $# -ge 2 ] || die "usage: settings.sh FILE FRONT_SECRET [TEMPLATE [NAME=VALUE…]]"
file=$1 front_secret=$2 template=${3:-$templates/sandcgi.conf}
shift $(($# < 3 ? $# : 3))
umask 077
if [ ! -e "$file" ]; then
    file_secret=$(random_hex)
    token=$(random_hex)
    set -- "FILE_SECRET=$file_secret" "MCP_API_TOKEN=$token" ${front_secret:+"SANDCGI_SECRET_FILE=$front_secret"} "$@"
    lines=$(cat "$template" && printf .) # its empty lines at the end, too
    for pair; do
        lines=$(pair=$pair awk '
            BEGIN { name = substr(ENVIRON["pair"], 1, index(ENVIRON["pair"], "=")) }
            index($0, name) == 1 { print ENVIRON["pair"]; next }
            { print }' <<END
$lines
END
        )
    done
    printf '%s' "${lines%.}" | write_file 0600 "$file"
fi
if [ -n "$front_secret" ] && [ ! -e "$front_secret" ]; then
    secret=$(random_hex)
    printf %s "$secret" | write_file 0600 "$front_secret"
fi
