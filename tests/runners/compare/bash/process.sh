#!/usr/bin/env bash
# differs: ^1 .*
echo "$PPID" "$(ps -o sid= -p $$ 2>/dev/null | tr -d ' ' || true)"
ls /proc/self/fd
tr '\0' ' ' </proc/$$/cmdline
while read -r line; do # not by grep: bash blocks signals while it forks
    [[ $line =~ ^Sig(Blk|Ign)|^NoNewPrivs ]] && echo "$line"
done </proc/$$/status
ulimit -c -n -s
for p in /proc/[0-9]*; do
    [ "$p" = "/proc/$$" ] || { echo "${p#/proc/} $(tr '\0' ' ' <"$p/cmdline")"; }
done 2>/dev/null | grep '^1 '
exec sh -c 'kill -SEGV $$'
