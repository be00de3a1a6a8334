# shellcheck shell=bash disable=SC2154 # build.sh sources this
# What of the images needs a compiler.

# What the programs in the images are made of, as one number; installed, the file "sources" says what it was. Not the programs
# themselves: another compiler makes other ones of the same sources.
sources_fingerprint() {
    if [[ -f $here/common/main.c ]]; then
        (export LC_ALL=C && cd "$here" && cat common/*.[ch] warm/*.[ch] nss/*.[ch] | sha256sum | cut -d ' ' -f 1)
    else
        cat "$here/sources"
    fi
}

ensure_entry() {
    local source stale=no
    for source in "$here"/common/*.[ch]; do
        [[ $source -nt $entry ]] && stale=yes
    done
    [[ $stale == yes ]] || return 0
    step "entry program"
    "${CC:-cc}" -std=gnu17 -O2 -Wall -Wextra -static -s -I"$here/.." -o "$entry.new" "$here"/common/*.c >>"$log" 2>&1 ||
        fail_logged "the entry program does not compile: install gcc and libc6-dev"
    mv "$entry.new" "$entry"
    done_step
}

# A shared object of the images, from the sources beside it.
ensure_shared() {
    local name source stale=no
    name=$(basename "$1")
    for source in "${1%/*}"/*.[ch]; do
        [[ $source -nt $1 ]] && stale=yes
    done
    [[ $stale == yes ]] || return 0
    step "$name"
    "${CC:-cc}" -std=gnu17 -O2 -Wall -Wextra -fPIC -shared -s -Wl,-soname,"$name" -o "$1.new" "${1%/*}"/*.c >>"$log" 2>&1 ||
        fail_logged "$name does not compile: install gcc and libc6-dev"
    mv "$1.new" "$1"
    done_step
}
