#!/usr/bin/env bash
sleep 0.1 && echo late &
wait
echo waited
(sleep 100 >/dev/null 2>&1 &)
sleep 100 &
disown
echo "left two behind"
exit 5
