#!/usr/bin/env bash
trap 'echo got TERM' TERM
trap 'echo got USR1' USR1
trap
kill -TERM $$
kill -USR1 $$
trap - TERM
echo "now it kills"
kill -KILL $$
