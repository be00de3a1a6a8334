# shellcheck shell=bash disable=SC2034,SC2154 # the files of this folder share variables
# Runs the first programs through nginx, and prints the next steps.

# Under a name that the certificate is for.
front_url()
{
    printf 'https://%s:%s' "$cert_host" "$https_port"
}

# Options of curl for it. The name may lead elsewhere, or nowhere yet: the server is here.
front_options()
{
    printf '%s\n' --cacert "$cert"
    [[ $cert_host == localhost ]] || printf '%s\n' --connect-to "::localhost:$https_port"
}

# front PATH [CURL OPTIONS…]; the token is not passed on the command line, where ps shows it.
front()
{
    local path=$1 options
    shift
    mapfile -t options < <(front_options)
    curl -sS --max-time 60 "${options[@]}" --config <(printf 'header = "Authorization: Bearer %s"\n' "$api_token") \
        "$@" "$(front_url)$path"
}

call_json()
{
    front /mcp/api -H 'Content-Type: application/json' -H 'Accept: application/json' -d "$1" 2>>"$log_file"
}

healthy()
{
    local options
    mapfile -t options < <(front_options)
    [[ $(curl -s -o /dev/null -w '%{http_code}' --max-time 5 "${options[@]}" "$(front_url)/healthz") == 200 ]]
}

# Stops waiting when the server has ended.
healthy_or_dead()
{
    healthy || ! sandcgi_pid >/dev/null
}

tools_answer()
{
    call_json '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' | jq -e '.result.tools | length > 0' >/dev/null 2>&1
}

wait_for_answers()
{
    wait_until 30 healthy_or_dead || true
    sandcgi_pid >/dev/null || die "sandcgi has ended: $(last_complaint "$sandcgi_log"); the log is $sandcgi_log"
    healthy || die "$(front_url)/healthz does not answer 200; see $sandcgi_log and $log_dir/nginx-error.log"
    wait_until 10 tools_answer || die "tools/list is not answered through $(front_url)/mcp/api; see $sandcgi_log and $log_dir/nginx-error.log"
}

# offers LANGUAGE: the server has found its image.
offers()
{
    call_json '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_runners","arguments":{}}}' |
        jq -e --arg language "$1" 'any(.result.structuredContent.languages[]; .language == $language)' >/dev/null 2>&1
}

# is_busy ANSWER: others use the server, which is well.
is_busy()
{
    jq -e '.result.structuredContent.status == "busy" or (.error.message // "" | startswith("too many calls"))' >/dev/null 2>&1 <<<"$1"
}

# run_first_program python|bash; start_ms is the time of the start.
run_first_program()
{
    local language=$1 code='print(6 * 7)' answer began
    # shellcheck disable=SC2016 # the program expands it
    [[ $language != bash ]] || code='echo $((6 * 7))'
    wait_until 30 offers "$language" || die "the server does not find an image that runs $language; see SANDBOX_IMAGES in $env_file, and $sandcgi_log"
    began=$(now_ms)
    printf '  %-44s ' "first program ($language)"
    answer=$(call_json '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_code","arguments":
        {"conversationId":"start","language":"'"$language"'","code":"'"$code"'"}}}') || answer=
    if is_busy "$answer"; then
        printf ' left out: the server is busy\n'
        return
    fi
    if [[ $(jq -r '.result.structuredContent.stdout' 2>/dev/null <<<"$answer") != 42 ]]; then
        printf ' failed\n'
        die "the program did not print 42 but: $(head -c 600 <<<"$answer" | tr '\n' ' '); see $sandcgi_log"
    fi
    printf ' %s, %s after the start\n' "$(seconds_since "$began")" "$(seconds_since "$start_ms")"
}

# Commands that work as pasted, from any folder. The token itself is shown on a terminal alone.
print_ending()
{
    local header options words link=
    mapfile -t words < <(front_options)
    options=$(printf '%q ' "${words[@]}")
    # shellcheck disable=SC2016 # the user's shell expands it
    header=$(printf '"Authorization: Bearer $(sed -n s/^MCP_API_TOKEN=//p %q)"' "$env_file")
    if on_terminal; then
        header=$(printf %q "Authorization: Bearer $api_token")
        link="#token=$(jq -rn --arg token "$api_token" '$token | @uri')"
    fi
    cat <<END

sandcgi answers on this machine.
${page_dir:+
Run a program in the browser:
  http://localhost:$http_port/$link
}
Add it to Claude Code:
claude mcp add --transport http sandcgi http://localhost:$http_port/mcp --header $header

Call it from a shell:
curl -sS $options$(front_url)/mcp/api -H "Content-Type: application/json" -H $header -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"python","code":"print(6 * 7)"}}}' | jq .result.structuredContent

The token is MCP_API_TOKEN in $env_file, the certificate is $cert, logs are in $log_dir.
Other clients: README.md. More tokens: $binary token add --config $env_file --tenant NAME
./start.sh --status shows the status, ./start.sh --stop stops the server.
END
}

on_terminal()
{
    [[ -t 1 ]]
}
