#!/usr/bin/env bash
# Files have the same media types, and the same are shown, whether nginx serves them or the program (fcgi/http/file_types.c).
. "$(dirname "$0")/common.sh"

# "extension type shown" of each row, sorted.
of_program() {
    sed -nE 's/^    \{"([a-z0-9]+)", \{"([^";]+)[^"]*", (true|false)\}\},$/\1 \2 \3/p' fcgi/http/file_types.c
}

of_nginx() {
    local type rest extension shown
    # shellcheck disable=SC2016  # the variables are nginx's
    shown=$(sed -nE '/^map \$uri \$sandcgi_disposition/,/^}/s/.*\(\?:([a-z0-9|?]+)\).* inline;/\1/p' nginx/http.conf.in)
    while read -r type rest; do
        for extension in ${rest%;}; do
            [[ $extension =~ ^($shown)$ ]] && echo "$extension $type true" || echo "$extension $type false"
        done
    done < <(sed -n '/^types {/,/^}/p' nginx/types.conf.in | grep ';') | LC_ALL=C sort
}

found=$(diff <(of_nginx) <(of_program) || true)
[ -n "$(of_program)" ] || found="fcgi/http/file_types.c:1: no row was understood"
verdict "$found" "the rows marked < are those of nginx (types.conf.in, http.conf.in), > those of fcgi/http/file_types.c: make them equal"
