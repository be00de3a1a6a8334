#!/usr/bin/env bash
# env: NAME=a value
# env: EMPTY=
# env: MULTI=a\nb=c
# env: PATH=/data/bin:/usr/bin:/bin
# file: bin/tool
#| echo the tool
env | sort
chmod 755 bin/tool
tool
echo "${NAME}|${EMPTY-unset}|${MULTI}|${NEVER-unset}|$-|$SHLVL|${BASH_SOURCE[0]}|$PWD|$HOME|$UID"
