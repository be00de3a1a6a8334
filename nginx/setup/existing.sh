# shellcheck shell=bash disable=SC2034,SC2154 # the files of this folder share variables
# What an nginx that is there has: its account, the files that it includes, its server blocks. Sourced by setup-nginx.sh.

# Sets nginx_built and nginx_conf.
find_nginx_conf()
{
    nginx_built=$(nginx -V 2>&1)
    [[ -n $nginx_conf ]] || nginx_conf=$(sed -n 's/.*--conf-path=\([^ ]*\).*/\1/p' <<<"$nginx_built")
    [[ -r $nginx_conf ]] || die "nginx's main configuration file is not at ${nginx_conf:-a place that nginx -V names}; name it with --nginx-conf"
}

# The account and group of nginx's workers: of its configuration, whichever of its files has them, else the one that it was built for.
find_nginx_account()
{
    local account group=''
    read -r account group < <(sed -n '/^[[:space:]]*user[[:space:]]/{s/^[[:space:]]*user[[:space:]]*\([^;]*\);.*/\1/p;q}' <<<"$dump") || true
    [[ -n $account ]] || account=$(sed -n 's/.*--user=\([^ ]*\).*/\1/p' <<<"$nginx_built")
    account=${account:-nobody}
    getent passwd "$account" >/dev/null || die "nginx's account '$account' ($nginx_conf) does not exist; correct the line \"user\" there"
    nginx_user="$account ${group:-$(id -gn "$account")}"
}

# nginx_sees FOLDER OPTION: nginx -t or -T with the content of FOLDER at $output, and the new file of --create-site; for this process alone,
# by a mount namespace. Its complaint is in $stage/problem.
nginx_sees()
{
    local binds=("$1" "$output")
    [[ ! -d $stage/conf.d ]] || binds+=("$stage/conf.d" "${site_file%/*}")
    # shellcheck disable=SC2016 # it is the inner shell's
    unshare --mount sh -c 'conf=$1 option=$2; shift 2
        while [ $# -gt 0 ]; do mount --bind "$1" "$2" || exit 125; shift 2; done
        exec nginx "$option" -e stderr -c "$conf"' sh "$nginx_conf" "$2" "${binds[@]}" 2>"$stage/problem"
}

# What nginx said last.
emergency()
{
    sed -n 's/.*\[emerg\] [0-9#]*: //p' "$stage/problem" | head -n 1
}

# Sets dump to the operator's configuration, with empty files of ours: so it is there when ours are not, or are half included.
read_nginx()
{
    mkdir "$stage/empty"
    : >"$stage/empty/http.conf"
    : >"$stage/empty/server.conf"
    dump=$(nginx_sees "$stage/empty" -T) || dump=$(nginx -T -e stderr -c "$nginx_conf" 2>"$stage/problem") ||
        die "nginx refuses its configuration as it is, without the files of sandcgi: $(emergency); correct that first"
    includes_http='' includes_server=''
    ! nginx_reads http.conf || includes_http=1
    ! nginx_reads server.conf || includes_server=1
}

# nginx_reads NAME: is that file of $output in the dump? Its path may be another one there.
nginx_reads()
{
    local files
    mapfile -t files < <(sed -n 's/^# configuration file \(.*\):$/\1/p' <<<"$dump")
    grep -qxF -- "$(realpath -m -- "$output/$1")" < <(realpath -m -- "${files[@]}")
}

# The server blocks of the dump, a line each: its file, its TLS port or 0, its names.
server_blocks()
{
    awk '
        function word(text) {
            gsub(/^["\047]|["\047]$/, "", text)
            words[++n] = text
        }
        function directive() {
            if (!server || depth != server) return
            if (words[1] == "server_name") for (i = 2; i <= n; i++) names = names " " words[i]
            if (words[1] == "listen" && words[2] !~ /^unix:/)
                for (i = 3; i <= n; i++)
                    if (words[i] == "ssl") {
                        tls = words[2]
                        sub(/.*:/, "", tls)
                        if (tls !~ /^[0-9]+$/) tls = 80
                    }
        }
        /^# configuration file \// { file = substr($0, 22, length($0) - 22); depth = n = server = 0; next }
        {
            line = $0
            while (match(line, /^([ \t\r]+|#.*|"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047|[{};]|[^ \t\r{};]+)/)) {
                token = substr(line, 1, RLENGTH)
                line = substr(line, RLENGTH + 1)
                if (token == ";") { directive(); n = 0 }
                else if (token == "{") {
                    block[++depth] = words[1]
                    if (words[1] == "server" && block[depth - 1] != "stream") { server = depth; names = ""; tls = 0 }
                    n = 0
                }
                else if (token == "}") {
                    if (depth == server && server) { print file "\t" tls "\t" names; server = 0 }
                    depth--
                    n = 0
                }
                else if (token !~ /^[ \t\r#]/) word(token)
            }
        }' <<<"$dump"
}

# serves NAME: nginx's name of a server block is that of $server_name.
serves()
{
    [[ ${server_name,,} == "${1,,}" ]]
}

# The same of a name that stands for several: .example.org, *.example.org, ~^(a|b)[.]example[.]org$
serves_among_others()
{
    # shellcheck disable=SC2053 # *.example.org is a pattern
    case $1 in
    '~'*) grep -qiP -- "${1#\~}" <<<"$server_name" ;;
    .*) [[ .${server_name,,} == *"${1,,}" ]] ;;
    *) [[ ${server_name,,} == ${1,,} ]] ;;
    esac
}

# Sets block to the file with the server block of $server_name, and tls_port to its port with TLS; both are empty without such a block.
# names: what blocks there are.
find_block()
{
    local file port found name how
    block='' tls_port=''
    for how in serves serves_among_others; do
        [[ -z $block ]] || return 0
        names=''
        while IFS=$'\t' read -r file port found; do
            read -ra found <<<"$found"
            for name in "${found[@]}"; do
                [[ $name == _ || $name == localhost || " $names " == *" $name "* ]] || names+=" $name"
                [[ -n $server_name ]] || continue
                "$how" "$name" || continue
                [[ -n $tls_port || ($port == 0 && -n $block) ]] || { block=$file tls_port=${port#0}; }
            done
        done < <(server_blocks)
        names=${names# }
    done
}

# A server block for a machine that has none.
site_text()
{
    local six=''
    [[ ! -e /proc/net/if_inet6 ]] || six=$'\n    listen [::]:443 ssl;'
    cat <<END
include $output/http.conf;
server {
    listen 443 ssl;$six
    server_name $server_name;
    ssl_certificate ${certificate:-/etc/ssl/$server_name.pem};
    ssl_certificate_key ${key:-/etc/ssl/private/$server_name.key};
    include $output/server.conf;
    location / { return 404; }
}
END
}
