#!/usr/bin/env bash
# args: one "two words" "" --flag
# stdin: a line\n
printf '%s|' "$0" "$#" "$@"
read -r x
echo "$x"
kill -TERM $$
