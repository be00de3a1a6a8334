#!/usr/bin/env bash
# file: in.txt
#| some text
pwd
umask
ls -a /data /tmp | sed "/^[.]script[.]sh$/d"
tr t T <in.txt >out.txt
mkdir -p deep/er
ln -s ../in.txt deep/link
chmod 751 deep
: >empty
echo "echo sourced \"\$1\"" >lib.sh
# shellcheck disable=SC1091
source ./lib.sh argument
