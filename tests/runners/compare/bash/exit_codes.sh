#!/usr/bin/env bash
trap 'echo "exit trap $?"' EXIT
false
echo "status $?"
(exit 3)
echo "status $?"
set -e
sh -c 'exit 42'
echo never
