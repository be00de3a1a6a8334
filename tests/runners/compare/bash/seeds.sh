#!/usr/bin/env bash
# fresh: ^random (\S+)
# fresh: ^srandom (\S+)
# fresh: ^mktemp (\S+)
echo "random $RANDOM$RANDOM$RANDOM"
echo "srandom $SRANDOM"
echo "mktemp $(mktemp)"
echo "$((SECONDS < 20))"
