#!/usr/bin/env bash
cat
echo "end of input"
[ -f /dev/stdin ] && echo "a file"
