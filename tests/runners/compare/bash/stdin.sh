#!/usr/bin/env bash
# stdin: one\ntwo\nthree
head -n 1
while read -r line || [ -n "$line" ]; do echo "line $line"; done
read -r line || echo "status $?"
[ -t 0 ] || echo "no terminal"
