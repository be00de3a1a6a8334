#!/usr/bin/env bash
# Every header compiles alone, and none includes config.h (that is the first line of every .c).
. "$(dirname "$0")/common.sh"

compiler=${CC:-cc}
need "${compiler%% *}" gcc
read -ra flags <<< "$(pkg-config --cflags jansson libcurl libcrypto 2> /dev/null || true)"

# Those of test programs need cmocka, which may be absent.
mapfile -t headers < <(c_files common fcgi | grep '\.h$')

check_one() {
    # shellcheck disable=SC2086 # CC may be "gcc -m32"
    $compiler -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -Wno-unused-function -fsyntax-only \
        -I. ${flags[@]+"${flags[@]}"} -include "$1" -x c /dev/null 2>&1 || true
}

found=$(
    for header in "${headers[@]}"; do
        check_one "$header"
    done
    grep -nE '^#[[:space:]]*include[[:space:]]+["<]config\.h' "${headers[@]}" || true
)
verdict "$found" "a header includes what it needs itself, and never config.h"
