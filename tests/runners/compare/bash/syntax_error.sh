#!/usr/bin/env bash
# shellcheck disable=all
echo begun
if true; then
    echo "in an open block"
done
