#!/bin/sh
# attempt.sh PROGRAM…: how make check runs a unit test. Where SANDCGI_TEST_UNSTEADY names a file, a program that fails has a
# second attempt; if that passes, the file gets its name: a defect to find, told by run.sh, and no reason to stop.
"$@"
status=$?
if [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || [ -z "${SANDCGI_TEST_UNSTEADY:-}" ]; then
    exit "$status"
fi
printf 'ended with status %d; the second attempt:\n' "$status"
"$@" || exit
printf 'tests/%s\n' "${1#*tests/}" >>"$SANDCGI_TEST_UNSTEADY"
