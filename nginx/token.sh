#!/usr/bin/env bash
# The tokens that nginx accepts. Each belongs to a tenant; tenants never see each other's files.
#   token.sh add TENANT                 creates a token and prints it once; a tenant may have several
#   token.sh remove TENANT [MARK]       removes all tokens of the tenant, or the one with that mark
#   token.sh list                       tenants and marks (the first digits of the token's SHA-256), no tokens
#   token.sh put TENANT <token-on-stdin adds a token of your own
# Options before the command: --file FILE (the map nginx includes), --no-reload, --reload COMMAND.
# nginx reads the new file without dropping a call. Calls that already run are not ended by a removal. When nginx cannot be told,
# the change stays, and counts from its next reload or start; the exit status is then 3.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
project=$(dirname "$here")
state=${SANDCGI_STATE_DIR:-$(sed -n 's/^START_STATE_DIR=//p' "$project/.env" 2>/dev/null || true)}
if [[ -z $state ]]; then
    state=$project/var
    ((EUID != 0)) || state=/var/lib/sandcgi
fi
file=$state/nginx/tokens.map
reload=reload_own_nginx
changed=no

die()
{
    printf 'token.sh: %s\n' "$1" >&2
    exit 1
}

check_tenant()
{
    [[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$ ]] ||
        die "a tenant's name is 1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit"
}

# A row: "~^(?i:bearer) +TOKEN$" "TENANT"; # MARK
mark_of()
{
    printf '%s' "$1" | sha256sum | cut -c1-12
}

row_of()
{
    local tenant=$1 token=$2 pattern
    pattern=${token//./\\.}
    pattern=${pattern//+/\\+}
    printf '"~^(?i:bearer) +%s$" "%s"; # %s\n' "$pattern" "$tenant" "$(mark_of "$token")"
}

rows()
{
    [[ ! -f $file ]] || grep '^"~' "$file" || true
}

rows_without()
{
    local tenant=$1 mark=${2:-} line
    while IFS= read -r line; do
        if [[ $line == *" \"$tenant\"; # $mark"* ]] && [[ -z $mark || $line == *"; # $mark" ]]; then
            continue
        fi
        printf '%s\n' "$line"
    done < <(rows)
}

# Replaces the file in one step, so that nginx never reads half of it; only its owner may read it.
replace_file()
{
    local new
    new=$(mktemp "$file.XXXXXX") || die "cannot write beside $file; run this as the account that started sandcgi"
    {
        printf '# Token to tenant; written by token.sh. Confidential.\n'
        cat
    } >"$new"
    chmod 0600 "$new"
    if [[ -f $file ]] && cmp -s "$new" "$file"; then
        rm -f "$new"
        return
    fi
    mv -f "$new" "$file"
    changed=yes
}

# After everything is said: a token that was not shown would be lost.
tell_nginx()
{
    [[ $changed == yes ]] || return 0
    $reload || {
        printf 'token.sh: %s is changed, but nginx could not be told ("%s" failed): the change counts when nginx is reloaded\n' "$file" "$reload" >&2
        exit 3
    }
}

reload_own_nginx()
{
    local pid
    pid=$(cat "$state/run/nginx.pid" 2>/dev/null) || return 0
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) == nginx ]] || return 0
    kill -HUP "$pid"
}

add_token()
{
    local tenant=$1 token kept
    token=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
    [[ ${#token} -eq 64 ]] || die "no randomness from /dev/urandom"
    kept=$(rows)
    replace_file < <([[ -z $kept ]] || printf '%s\n' "$kept" && row_of "$tenant" "$token")
    printf '%s\n' "$token"
}

# A token belongs to one tenant: if another one has it, it moves.
put_token()
{
    local tenant=$1 token row kept
    IFS= read -r token || [[ -n $token ]] || die "the token is expected on standard input"
    [[ $token =~ ^[A-Za-z0-9._~+/-]{16,512}=*$ ]] ||
        die "a token is 16 to 512 letters, digits or ._~+/- (and = at the end)"
    row=$(row_of "$tenant" "$token")
    kept=$(rows)
    if ! grep -qxF -- "$row" <<<"$kept"; then
        kept=$(grep -v "; # $(mark_of "$token")\$" <<<"$kept" || true)
        replace_file < <([[ -z $kept ]] || printf '%s\n' "$kept" && printf '%s\n' "$row")
    fi
}

remove_tokens()
{
    local tenant=$1 mark=${2:-} kept
    kept=$(rows_without "$tenant" "$mark")
    [[ $kept != "$(rows)" ]] || die "tenant '$tenant' has no such token; see: token.sh list"
    replace_file < <([[ -z $kept ]] || printf '%s\n' "$kept")
}

list_tokens()
{
    rows | sed -E 's/^.*" "([^"]+)"; # ([0-9a-f]+)$/\1 \2/'
}

main()
{
    while [[ ${1:-} == --* ]]; do
        case $1 in
        --file) file=${2:?--file needs a path} && shift 2 ;;
        --no-reload) reload=true && shift ;;
        --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}" && exit 0 ;;
        --reload) reload=${2:?--reload needs a command} && shift 2 ;;
        *) die "unknown option $1; known are --file, --no-reload, --reload, --help" ;;
        esac
    done
    local command=${1:-} tenant=${2:-}
    mkdir -p "$(dirname "$file")"
    # One change at a time, or one of two would be lost.
    exec 9<"$(dirname "$file")"
    flock 9
    case $command in
    add | remove | put)
        check_tenant "$tenant"
        ;;&
    add) add_token "$tenant" ;;
    put) put_token "$tenant" ;;
    remove) remove_tokens "$tenant" "${3:-}" ;;
    list) list_tokens ;;
    *) die "usage: token.sh add TENANT | remove TENANT [MARK] | list | put TENANT" ;;
    esac
    tell_nginx
}

main "$@"
