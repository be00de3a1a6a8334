#!/usr/bin/env bash
# Sentences that name a command take it from the table of common/base/remedy.c, whose commands are there in that way to run the server.
. "$(dirname "$0")/common.sh"

table=common/base/remedy.c
commands=$(sed -n 's/^    {"\([a-z-]*\)",.*/\1/p' fcgi/main.c | grep -vx stdio | paste -sd '|')
command="systemctl|docker-compose|docker compose|timedatectl|start\\.sh|nginx -[ts]|[a-z]/[a-z-]+\\.sh|(README|nginx/[a-z-]+|fcgi/[a-z-]+)\\.md|sandcgi ($commands)\\b"

# Each string of a C file, in one line with its neighbours: FILE:LINE: text. Those of comments and of includes are none.
# shellcheck disable=SC2317 # called by xargs
strings() {
    perl -0777 -ne '
        s{/\*.*?\*/}{my $c = $&; $c =~ tr/\n//cd; $c}gse;
        while (/"((?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*)/g) {
            my ($text, $line) = ($1, 1 + (substr($_, 0, pos) =~ tr/\n//));
            $text =~ s/"\s*"//g; $text =~ s/"$//;
            print "$ARGV:$line: $text\n";
        }' "$@"
}

# Help of commands, the manual of settings, names of files that are executed, and what another program is told of itself.
exempt='^(fcgi/(main|backup|settings|setup|command_line)\.c|fcgi/(tokens/token_command|tokens/token_edit|tokens/token_rows|oauth/server/command|nodes/(command|render)|doctor/denials|way)\.c|common/base/remedy\.c):|script_find|: systemctl$|: sandcgi setup: $|: nginx/[a-z-]+\.sh$'
found=$(
    c_files common fcgi | xargs -d '\n' bash -c "$(declare -f strings); strings \"\$@\"" strings | grep -E -- "$command" | grep -vE "$exempt" || true

    text=$(sed -n '/^static const char \*const remedies/,/^};/p' "$table")
    while read -r word; do
        grep -q "^    {\"$word\"," fcgi/main.c || echo "$table: there is no command sandcgi $word"
    done < <(grep -oE '(BY_PROGRAM\("|"sandcgi |: sandcgi )[a-z-]+' <<<"$text" | grep -oE '[a-z-]+$' | sort -u)
    while read -r unit; do
        [ -f "service/$unit.service.in" ] || echo "$table: there is no unit $unit"
    done < <(grep -oE 'systemctl [a-z]+ sandcgi[a-z-]*' <<<"$text" | grep -oE '[a-z-]+$' | sort -u)
    while read -r script; do
        [ -x "$script" ] || echo "$table: there is no $script"
    done < <(grep -oE '(\./|[a-z]+/[a-z/-]*)[a-z-]+\.sh' <<<"$text" | sort -u)
    while read -r service; do
        grep -q "^  $service:" docker-compose.yml || echo "$table: docker-compose.yml has no service $service"
    done < <(grep -oE 'docker-compose (restart|kill -s HUP|run --rm|exec|up -d --build) [a-z]+' <<<"$text" | grep -oE '[a-z]+$' | sort -u)
)
verdict "$found" "name the command in $table, for each way to run the server"
