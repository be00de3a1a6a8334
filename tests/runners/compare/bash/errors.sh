#!/usr/bin/env bash
no_such_command
echo "status $?"
cat /nowhere/file
/data
echo "status $?"
set -u
# shellcheck disable=SC2154
echo "$undefined"
