#!/usr/bin/env bash
head -c 3000000 /dev/zero | tr '\0' x
head -c 300000 /dev/zero | tr '\0' y >&2
exit 9
