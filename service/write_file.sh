# shellcheck shell=sh
# The one way in which scripts replace a file. The script that reads this has die().

# write_file MODE FILE <text: whole or not at all, with its final mode.
write_file()
{
    new_file=$(mktemp "$2.XXXXXX") || die "cannot write into $(dirname "$2"); check its permissions and the disk"
    if ! { cat >"$new_file" && chmod "$1" "$new_file" && mv -f "$new_file" "$2"; }; then
        rm -f "$new_file"
        die "cannot write $2; check its permissions and the disk"
    fi
}
