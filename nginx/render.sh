#!/usr/bin/env bash
# Fills the templates (*.in): @NAME@ becomes a value, and nothing with an @ may be left over.
#   render.sh OUTPUT_FOLDER [NAME=VALUE…]
# Writes nginx.conf (a complete nginx) and the pieces it is made of; an existing nginx includes http.conf and
# server.conf instead (see by-hand.md here). Files that would not change are left alone. The values are kept in "values".
#   render.sh --check OUTPUT_FOLDER
# prints the names of the files there that it would write differently by those values; its status is then 1.
set -euo pipefail

# shellcheck source=service/write_file.sh
source "$(dirname "${BASH_SOURCE[0]}")/../service/write_file.sh"
templates=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) # "make install" puts the place of the installed ones here
declare -A value=(
    [CONF_DIR]=''                      # where nginx will read the files; empty: OUTPUT_FOLDER
    [RUN_DIR]=/var/lib/sandcgi/run     # nginx's pid file
    [LOG_DIR]=/var/lib/sandcgi/log
    [ACCESS_LOG]=''                    # empty: access.log in LOG_DIR
    [TMP_DIR]=/var/lib/sandcgi/nginx/tmp
    [CACHE_DIR]=/var/lib/nginx         # with JUDGE: a folder of root's, in which nginx makes one for what the judge has said
    [SANDBOX_ROOT]=/var/lib/sandcgi/sandboxes
    [BACKEND]=unix:/var/lib/sandcgi/run/front.sock   # the workers' socket; or 127.0.0.1:PORT
    [HUB]=''                           # the hub's socket, likewise; empty: GET /mcp goes to the workers, which answer 405
    [JUDGE]=''                         # the socket of sandcgi's process that judges access tokens; empty: static tokens alone
    [PUBLIC_URL]=''                    # PUBLIC_BASE_URL; with JUDGE
    [OAUTH_BACKEND]=''                 # the authorization server's socket, likewise; empty: none (SANDCGI_OAUTH is not builtin)
    [OAUTH_RATE]=5                     # its requests per second and address
    [SECRET_CONF]=/var/lib/sandcgi/run/front-secret.conf
    [TOKENS_FILE]=/var/lib/sandcgi/nginx/tokens.map
    [CERT]=/var/lib/sandcgi/tls/cert.pem
    [CERT_KEY]=/var/lib/sandcgi/tls/key.pem
    [USER]=''                          # "ACCOUNT GROUP" of nginx's workers; empty: the account that starts it
    [BIND]='127.0.0.1'                 # addresses to listen on, separated by spaces or commas; IPv6 in brackets
    [HTTPS_PORT]=8443
    [HTTP_PORT]=8080
    [PAGE_DIR]=''                      # the page's folder, as nginx/page/build.mjs makes it; empty: no page at /
    [PREFIX]=''                        # path in front of /mcp, /files/ …, as /sandbox; PUBLIC_BASE_URL must end with it
    [BODY_MAX]=16m                     # the same as SANDCGI_MAX_BODY
    [UPLOAD_MAX]=2g                    # the same as SANDBOX_UPLOAD_MAX
    [UPLOAD_CONNS]=16                  # uploads at the same time, each of at most UPLOAD_MAX; of one tenant four fifths
    [UPLOADS]=stream                   # stream: a worker stores a body and keeps room for it; file: nginx, in SANDBOX_ROOT/.uploads
    [FILE_KEY_CONF]=/var/lib/sandcgi/run/file-key.conf # what "sandcgi file-key" prints; for root only
    [STORE]=''                         # 1: files that are not here may be in the store; with SANDBOX_STORE
    [SIGNED_URLS]=''                   # 1: only signed download links are served; with SANDBOX_URL_TTL above 0
    [READ_TIMEOUT]=420                 # seconds without a byte from a worker; above the longest run
    [RATE]=50                          # calls per second and tenant …
    [BURST]=200                        # … this many more at once …
    [CONNS]=32                         # … and this many at the same time
    [STREAMS]=2000                     # streams per tenant that wait at the same time; see SANDCGI_MAX_STREAMS
    [REAL_IP_FROM]=''                  # proxies in front (addresses, networks) whose header names the client; empty: none
    [REAL_IP_HEADER]=X-Forwarded-For   # that header; of a Cloudflare Tunnel CF-Connecting-IP
    [HOSTS]=''                         # names that /mcp may be called under, besides localhost; * is any
    [ORIGINS]=''                       # origins of web pages that may call /mcp, besides those of that host
    [PROFILES]=all                     # sets of tools (sandcgi's setting TOOLS) to offer as well, each at /mcp/NAME; all: those of other servers
    [TOOLSETS]=''                      # TENANT=SET[+SET...] for every tenant that finds other tools at /mcp than TOOLS says
    [NETWORKS]=''                      # TENANT=TIER for every tenant whose programs get less than SANDBOX_NETWORK: none, public
    [NEVER_REUSE]=''                   # locations (/mcp, /mcp/NAME) whose programs get containers of their own, whatever SANDBOX_REUSE says
    [NODES_FILE]=''                    # an edge in front of several nodes: what "sandcgi nodes" writes; empty: a node, or the only machine
    [EDGE_SECRET_CONF]=/var/lib/sandcgi/run/edge-secret.conf # set $sandcgi_edge_secret "SANDCGI_EDGE_SECRET"; for root only
    [CONNECT_TIMEOUT]=300ms            # after which an edge takes a node for away
    [PARAM_HEADERS]=''                 # X for every header Mcp-Param-X that is to reach the workers
)

die()
{
    printf 'render.sh: %s\n' "$1" >&2
    exit 1
}

# Values appear in nginx's configuration quoted or bare; characters that could end either are refused.
take_values()
{
    local pair name text
    for pair in "$@"; do
        name=${pair%%=*} text=${pair#*=}
        [[ $pair == *=* && -v value[$name] ]] ||
            die "unknown setting '$name'; known are: $(printf '%s\n' "${!value[@]}" | sort | tr '\n' ' ')"
        [[ $text != *[\"\'\\\$\;{}@]* && $text != *[[:cntrl:]]* ]] ||
            die "$name must not contain quotes, backslashes, \$, ;, {, }, @ or control characters"
        value[$name]=$text
    done
    value[ACCESS_LOG]=${value[ACCESS_LOG]:-${value[LOG_DIR]}/access.log}
    value[PREFIX]=${value[PREFIX]%/}
    while [[ ${value[SANDBOX_ROOT]} == */ ]]; do # disable_symlinks compares it as text
        value[SANDBOX_ROOT]=${value[SANDBOX_ROOT]%/}
    done
}

check_values()
{
    local name
    for name in HTTPS_PORT HTTP_PORT READ_TIMEOUT RATE OAUTH_RATE BURST CONNS STREAMS UPLOAD_CONNS; do
        [[ ${value[$name]} =~ ^[1-9][0-9]{0,8}$ ]] || die "$name must be a positive whole number, not '${value[$name]}'"
    done
    for name in BODY_MAX UPLOAD_MAX; do
        [[ ${value[$name]} =~ ^[1-9][0-9]*[kKmMgG]?$ ]] || die "$name must be a size such as 16m, not '${value[$name]}'"
    done
    [[ ${value[PREFIX]} =~ ^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$ ]] ||
        die "PREFIX must be a path such as /sandbox, of letters, digits, dots, dashes and underscores, not '${value[PREFIX]}'"
    [[ ${value[CONNECT_TIMEOUT]} =~ ^[1-9][0-9]{0,5}m?s$ ]] || die "CONNECT_TIMEOUT must be a time such as 300ms or 2s, not '${value[CONNECT_TIMEOUT]}'"
    [[ -z ${value[NODES_FILE]} || ${value[NODES_FILE]} == /* ]] || die "NODES_FILE must be an absolute path, not '${value[NODES_FILE]}'"
    [[ ${value[UPLOADS]} =~ ^(file|stream)$ ]] || die "UPLOADS must be file or stream, not '${value[UPLOADS]}'"
    for name in SIGNED_URLS STORE; do
        [[ ${value[$name]} =~ ^1?$ ]] || die "$name must be 1 or empty, not '${value[$name]}'"
    done
    for name in RUN_DIR LOG_DIR TMP_DIR CACHE_DIR SANDBOX_ROOT SECRET_CONF FILE_KEY_CONF EDGE_SECRET_CONF TOKENS_FILE CERT CERT_KEY CONF_DIR ACCESS_LOG; do
        [[ ${value[$name]} == /* ]] || die "$name must be an absolute path, not '${value[$name]}'"
    done
}

# Words of a list, separated by blanks or commas, one to a line.
words()
{
    local list
    read -ra list <<<"${1//,/ }"
    ((${#list[@]} == 0)) || printf '%s\n' "${list[@]}"
}

# pattern TEXT: the regular expression for it. A row of a map whose key is text must be shorter than a host name may be.
pattern()
{
    sed 's/[].+[]/\\&/g' <<<"$1"
}

derive_allowed()
{
    local word hosts='' origins='' other=''
    while read -r word; do
        case $word in
        '*') other=1 ;;
        *[!A-Za-z0-9.:_\[\]-]*) die "HOSTS must be host names, perhaps with a port, not '$word'" ;;
        *:[0-9]*) hosts+="    \"~*^$(pattern "$word")\$\" 1;"$'\n' ;;
        *) hosts+="    \"~*^$(pattern "$word")(?::[0-9]+)?\$\" 1;"$'\n' ;;
        esac
    done < <(words "${value[HOSTS]}")
    while read -r word; do
        [[ $word =~ ^[a-z][a-z0-9+.-]*://[][A-Za-z0-9.:_-]+$ ]] || die "ORIGINS must be like https://example.org, not '$word'"
        origins+="    \"~*^$(pattern "$word")\$\" 1;"$'\n'
    done < <(words "${value[ORIGINS]}")
    value[HOST_ROWS]=${hosts%$'\n'}
    value[ORIGIN_ROWS]=${origins%$'\n'}
    value[OTHER_HOSTS]=$other
}

# Limits and the log then count and show the client, not the proxy.
derive_real_ip()
{
    local word lines=''
    while read -r word; do
        [[ $word =~ ^([0-9A-Fa-f.:]+(/[0-9]{1,3})?|unix:)$ ]] || die "REAL_IP_FROM must be addresses or networks such as 127.0.0.1 10.0.0.0/8, not '$word'"
        lines+="set_real_ip_from $word;"$'\n'
    done < <(words "${value[REAL_IP_FROM]}")
    [[ ${value[REAL_IP_HEADER]} =~ ^[A-Za-z0-9-]{1,64}$ ]] || die "REAL_IP_HEADER must be the name of a header, not '${value[REAL_IP_HEADER]}'"
    [[ -z $lines ]] || lines+="real_ip_header ${value[REAL_IP_HEADER]};"$'\n'"real_ip_recursive on;"
    value[REAL_IP_LINES]=$lines
}

derive_networks()
{
    local word rows=''
    while read -r word; do
        [[ $word =~ ^([A-Za-z0-9._-]+)=(none|public|lan)$ ]] || die "NETWORKS must be like alice=none, with none, public or lan, not '$word'"
        rows+="    \"~^${BASH_REMATCH[1]//./\\.}\$\" ${BASH_REMATCH[2]};"$'\n'
    done < <(words "${value[NETWORKS]}")
    value[NETWORK_ROWS]=${rows%$'\n'}
}

derive_reuse()
{
    local word rows=''
    while read -r word; do
        [[ $word =~ ^/mcp(/[a-z]{1,32})?$ ]] || die "NEVER_REUSE must be locations such as /mcp and /mcp/runner, not '$word'"
        rows+="    \"~^$(pattern "${value[PREFIX]}$word")\$\" never;"$'\n'
    done < <(words "${value[NEVER_REUSE]}" | sort -u)
    value[REUSE_ROWS]=${rows%$'\n'}
}

derive_toolsets()
{
    local word rows=''
    while read -r word; do
        [[ $word =~ ^([A-Za-z0-9._-]+)=([a-z]+(\+[a-z]+)*)$ ]] || die "TOOLSETS must be like alice=all or bob=files+admin, not '$word'"
        rows+="    \"~^${BASH_REMATCH[1]//./\\.}\$\" ${BASH_REMATCH[2]//+/,};"$'\n'
    done < <(words "${value[TOOLSETS]}")
    value[TOOLSET_ROWS]=${rows%$'\n'}
}

# Only letters and digits: a web server cannot tell "-" and "_" apart in a parameter's name.
derive_param_headers()
{
    local word lines='' names='' lower upper
    while read -r word; do
        [[ $word =~ ^[A-Za-z0-9]{1,64}$ ]] || die "PARAM_HEADERS must be names of letters and digits, not '$word'"
        lower=${word,,} upper=${word^^}
        lines+="fastcgi_param HTTP_MCP_PARAM_$upper \$http_mcp_param_$lower if_not_empty;"$'\n'
        names+=", Mcp-Param-$word"
    done < <(words "${value[PARAM_HEADERS]}")
    value[PARAM_HEADER_LINES]=${lines%$'\n'}
    value[PARAM_HEADER_NAMES]=$names
}

# How many requests may be open besides: see CALL_RESERVE in fcgi/process/calls.h, and common/base/share.h for uploads.
derive_conns()
{
    value[CONNS_ALL]=$((value[CONNS] + 16))
    value[UPLOAD_CONNS_TENANT]=$(((4 * value[UPLOAD_CONNS] + 4) / 5))
}

# nginx creates the folder and hands it to its workers' account.
derive_uploads()
{
    value[UPLOAD_LINES]="    fastcgi_pass_request_body off;
    client_body_in_file_only clean;
    client_body_temp_path \"${value[SANDBOX_ROOT]}/.uploads\";
    client_body_buffer_size 256k;
    fastcgi_param SANDCGI_BODY_FILE \$request_body_file if_not_empty;"
    [[ ${value[UPLOADS]} == file ]] || value[UPLOAD_LINES]="    fastcgi_pass_request_body on;
    fastcgi_request_buffering off;
    client_body_buffer_size 256k;"
}

derive_store()
{
    value[STORE_LINES]='        # No store: STORE is empty.'
    [[ -z ${value[STORE]} ]] || value[STORE_LINES]="        # A worker has the files of a conversation that is not here read back from the store, and sends this one.
        if (!-d \"${value[SANDBOX_ROOT]}/\$sandcgi_dir\") { return 418; }"
}

# The texts of tokens: see common/sandbox/links/file_link.h. The last of 22 characters carries two bits.
derive_signed()
{
    value[TOKEN_PATTERN]='(?<sandcgi_token>[\w-]{21}[AQgw])/'
    value[TOKEN_LINES]="        secure_link \$sandcgi_token;
        secure_link_md5 \"\$sandcgi_file_key\$sandcgi_dir\$sandcgi_file_key\";"
    value[TOKEN_REFUSAL]="if (\$secure_link = \"\") { return 404; }"
    [[ -n ${value[SIGNED_URLS]} ]] || return 0
    value[TOKEN_PATTERN]=
    value[TOKEN_LINES]="        error_page 403 @sandcgi_denied_file;
        error_page 301 302 400 404 405 408 411 413 414 500 =404 @sandcgi_no_file;
        error_page 418 = @sandcgi_old_file;
        secure_link \$sandcgi_signature;
        secure_link_md5 \"\$sandcgi_file_key\$secure_link_expires \$sandcgi_dir/\$sandcgi_file\$sandcgi_file_key\";"
    value[TOKEN_REFUSAL]="if (\$secure_link != 1) { return 403; }"
}

# The names behind /mcp: "all" stands for the sets of other servers, "none" for nothing. Others are not listed here: sandcgi answers 404
# to an unknown name. /mcp/all is always there.
profiles()
{
    { echo all && words "${value[PROFILES]}" | sed -e 's/^all$/runner\nsession\ncontainer\ninterpreter/' -e '/^none$/d'; } | sort -u
}

# also_at PLACE OTHER: what is at PLACE is at OTHER, too. nginx looks at a body's size before it rewrites.
also_at()
{
    echo "location = ${value[PREFIX]}$2 {
    client_max_body_size ${value[BODY_MAX]};
    error_page 413 @sandcgi_error;
    rewrite ^ ${value[PREFIX]}$1 last;
}"
}

# A slash at the end changes nothing. Where the first server's clients had their stream once, they find that of its tools.
derive_profiles()
{
    local word locations
    locations=$(also_at /mcp /mcp/; also_at /mcp/api /mcp/api/)$'\n'
    while read -r word; do
        [[ $word =~ ^[a-z]{1,32}$ ]] || die "PROFILES must be names of sets of tools such as session, not '$word'"
        [[ $word != api ]] || die "PROFILES: /mcp/api is there already, with all tools and structured results"
        locations+="location = ${value[PREFIX]}/mcp/$word {"$'\n'"    set \$sandcgi_tools $word;"$'\n'
        locations+="    set \$sandcgi_answers \"\";"$'\n'
        locations+="    include \"${value[CONF_DIR]}/mcp.conf\";"$'\n}\n'
        locations+=$(also_at "/mcp/$word" "/mcp/$word/")$'\n'
        [[ $word != runner ]] || locations+=$(also_at /mcp/runner /mcp/events)$'\n'
    done < <(profiles)
    value[PROFILE_LOCATIONS]=${locations%$'\n'}
}

derive_hub()
{
    value[HUB_BACKEND]=${value[HUB]:-${value[BACKEND]}}
    value[HUB_IS_THERE]=${value[HUB]:+1}
}

# The documents of RFC 8414 have the issuer's path behind their names; some clients look below it.
derive_oauth()
{
    local name path
    value[OAUTH_UPSTREAM]=${value[OAUTH_BACKEND]:-${value[BACKEND]}}
    value[OAUTH_LINE]='# No authorization server: OAUTH_BACKEND is empty.'
    value[OAUTH_WELL_KNOWN]=
    [[ -n ${value[OAUTH_BACKEND]} ]] || return 0
    value[OAUTH_LINE]="include \"${value[CONF_DIR]}/oauth.conf\";"
    for name in oauth-authorization-server openid-configuration; do
        while read -r path; do
            value[OAUTH_WELL_KNOWN]+="location = $path { include \"${value[CONF_DIR]}/oauth_document.conf\"; }"$'\n'
        done < <(printf '%s\n' "/.well-known/$name${value[PREFIX]}" "${value[PREFIX]}/.well-known/$name" | sort -u)
    done
    value[OAUTH_WELL_KNOWN]=${value[OAUTH_WELL_KNOWN]%$'\n'}
}

# Access tokens of OAuth, and the metadata that lead clients to their issuer. Below PREFIX the metadata are at both places: the
# path stands behind the well-known part, and where an outer web server takes it away it stands before.
derive_judge()
{
    local word path locations=''
    value[JUDGE_BACKEND]=${value[JUDGE]:-${value[BACKEND]}}
    value[JUDGE_LINES]='# Static tokens alone: JUDGE is empty.' value[JWT_ROW]=
    value[CHALLENGE_REST]='' value[METADATA_LOCATIONS]='' value[JUDGED_CACHE]=''
    value[JUDGED_LINES]='    fastcgi_cache off;'
    [[ -n ${value[JUDGE]} ]] || return 0
    [[ ${value[PUBLIC_URL]} =~ ^https?://[^[:space:]]+$ ]] || die "PUBLIC_URL must be a URL such as https://sandbox.example.org when JUDGE is set, not '${value[PUBLIC_URL]}'"
    value[JUDGED_CACHE]="fastcgi_cache_path \"${value[CACHE_DIR]}/sandcgi-judged\" keys_zone=sandcgi_judged:1m inactive=1m max_size=32m use_temp_path=off;"
    value[JUDGED_LINES]="    fastcgi_cache sandcgi_judged;
    fastcgi_cache_key \$sandcgi_jwt_end;
    fastcgi_cache_bypass \$sandcgi_unkept;
    fastcgi_no_cache \$sandcgi_unkept;
    fastcgi_cache_methods GET HEAD;
    fastcgi_cache_min_uses 1;
    # The answer says how long it counts.
    fastcgi_cache_valid 204 1s;
    fastcgi_cache_use_stale off;
    fastcgi_cache_lock off;
    fastcgi_cache_background_update off;
    fastcgi_ignore_headers X-Accel-Redirect Set-Cookie Vary;
    fastcgi_buffering on;
    open_file_cache max=8192 inactive=1m;
    open_file_cache_valid 1m;"
    # shellcheck disable=SC2016 # it is nginx's variable
    value[JWT_ROW]='    "~^(?i:bearer) +(?<sandcgi_jwt_text>[\w-]++\.[\w-]++\.[\w-]++(?<=[\w-]{22}))$" $sandcgi_jwt_text;'
    value[JUDGE_LINES]="if (\$sandcgi_jwt_end) { rewrite ^ /.sandcgi/judge last; }
if (\$sandcgi_asks) { rewrite ^ /.sandcgi/judge last; }"
    value[CHALLENGE_REST]=", scope=\"run files\", resource_metadata=\"${value[PUBLIC_URL]%/}/.well-known/oauth-protected-resource\$sandcgi_mcp_place\""
    while read -r word; do
        for path in "/.well-known/oauth-protected-resource${value[PREFIX]}" "${value[PREFIX]}/.well-known/oauth-protected-resource"; do
            [[ $word == / ]] || path+=$word
            [[ $locations == *"= $path {"* ]] || locations+="location = $path { include \"${value[CONF_DIR]}/metadata.conf\"; }"$'\n'
        done
    done < <(printf '/\n/mcp\n/mcp/api\n' && profiles | sed 's,^,/mcp/,')
    value[METADATA_LOCATIONS]="${locations}location = /.sandcgi/metadata-options {
    internal;
    access_log \"${value[ACCESS_LOG]}\" sandcgi if=\$sandcgi_refused;
    add_header Allow \"GET, HEAD, OPTIONS\" always;
    add_header Access-Control-Allow-Origin * always;
    add_header Access-Control-Allow-Methods GET always;
    add_header Access-Control-Allow-Headers \"Accept, MCP-Protocol-Version\" always;
    add_header Access-Control-Max-Age 600 always;
    return 204;
}"
}

# Of access tokens an edge does not know the tenant: any node does, and says where the call belongs.
derive_edge()
{
    value[SITE]=server
    value[EDGE_HTTP_LINE]='# No edge: NODES_FILE is empty.'
    value[STRANGER_LINES]='    # Static tokens alone: JUDGE is empty.'
    [[ -z ${value[JUDGE]} ]] || value[STRANGER_LINES]="    if (\$sandcgi_asks) { return 420; }"
    [[ -n ${value[NODES_FILE]} ]] || return 0
    value[SITE]=edge
    value[EDGE_HTTP_LINE]="include \"${value[CONF_DIR]}/edge_http.conf\";"
    value[HUB_IS_THERE]=1 value[JUDGE_BACKEND]=${value[BACKEND]} value[JUDGED_CACHE]='' value[JWT_ROW]=''
}

derive_page()
{
    value[PAGE_LINE]='# No page: PAGE_DIR is empty.'
    [[ -n ${value[PAGE_DIR]} ]] || return 0
    [[ ${value[PAGE_DIR]} == /* ]] || die "PAGE_DIR must be an absolute path, not '${value[PAGE_DIR]}'"
    value[PAGE_LINE]="include \"${value[CONF_DIR]}/page.conf\";"
}

derive_values()
{
    local address https='' http=''
    for address in ${value[BIND]//,/ }; do
        https+="listen $address:${value[HTTPS_PORT]} ssl http2; "
        http+="listen $address:${value[HTTP_PORT]}; "
    done
    [[ -n $https ]] || die "BIND must name at least one address"
    value[LISTEN_HTTPS]=${https% }
    value[LISTEN_HTTP]=${http% }
    value[PREFIX_PATTERN]=${value[PREFIX]//./\\.}
    value[TOKENS_GLOB]=${value[TOKENS_FILE]%?}[${value[TOKENS_FILE]: -1}]
    value[USER_LINE]=${value[USER]:+user ${value[USER]};}
    derive_page
    derive_hub
    derive_judge
    derive_oauth
    derive_conns
    derive_uploads
    derive_signed
    derive_allowed
    derive_real_ip
    derive_networks
    derive_reuse
    derive_toolsets
    derive_param_headers
    derive_profiles
    derive_store
    derive_edge
}

render_file()
{
    local template=$1 target=$2 text name
    text=$(<"$template")
    for name in "${!value[@]}"; do
        text=${text//"@$name@"/"${value[$name]}"}
    done
    [[ ! $text =~ @[A-Z_]+@ ]] || die "$template: nothing is known about ${BASH_REMATCH[0]}"
    if [[ -f $target ]] && cmp -s "$target" - <<<"$text"; then
        return
    fi
    write_file 0644 "$target" <<<"$text"
}

# An edge and a node have only some templates in common.
is_wanted()
{
    case $1 in
    nginx.conf.in | http.conf.in | answers.conf.in | page.conf.in) true ;;
    edge*) [[ -n ${value[NODES_FILE]} ]] ;;
    *) [[ -z ${value[NODES_FILE]} ]] ;;
    esac
}

# render_all FOLDER
render_all()
{
    local template name
    for template in "$templates"/*.in; do
        name=${template##*/}
        is_wanted "$name" || continue
        render_file "$template" "$1/${name%.in}"
    done
}

# A whole nginx.conf is there only where nginx is ours.
check_rendered()
{
    local folder status=0 file given=()
    folder=$(cd "$1" && pwd)
    mapfile -t given <"$folder/values"
    value[CONF_DIR]=$folder
    take_values "${given[@]}"
    check_values
    derive_values
    fresh=$(mktemp -d)
    trap 'rm -rf "$fresh"' EXIT
    render_all "$fresh"
    for file in "$fresh"/*; do
        [[ ${file##*/} != nginx.conf || -e $folder/nginx.conf ]] || continue
        cmp -s "$file" "$folder/${file##*/}" || { printf '%s\n' "${file##*/}" && status=1; }
    done
    return "$status"
}

main()
{
    if [[ $# -eq 2 && $1 == --check ]]; then
        check_rendered "$2"
        exit
    fi
    [[ $# -ge 1 && $1 != -* ]] || die "usage: render.sh OUTPUT_FOLDER [NAME=VALUE…]"
    local folder
    mkdir -p "$1"
    folder=$(cd "$1" && pwd)
    value[CONF_DIR]=$folder
    take_values "${@:2}"
    check_values
    derive_values
    render_all "$folder"
    printf '%s\n' "${@:2}" | sed '/^$/d; /^CONF_DIR=/d' | write_file 0644 "$folder/values"
}

main "$@"
