#!/usr/bin/env bash
# file: in.txt
#| some text
pwd
umask
shopt -s dotglob
for path in /data/* /tmp/*; do [[ $path == */.script.sh ]] || echo "$path"; done
tr t T <in.txt >out.txt
mkdir -p deep/er
ln -s ../in.txt deep/link
chmod 751 deep
: >empty
echo "echo sourced \"\$1\"" >lib.sh
# shellcheck disable=SC1091
source ./lib.sh argument
