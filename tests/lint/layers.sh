#!/usr/bin/env bash
# Include arrows: a folder includes itself and the folders that the table below names, by paths from the top; each outside library is included
# in its own place only; config.h comes first in every .c.
. "$(dirname "$0")/common.sh"

mapfile -t files < <(c_files common fcgi)

found=$(awk '
    BEGIN {
        # Folder -> the folders that it may include besides its own, lowest first.
        may["common/base"] = ""
        may["common/rpc"] = "common/base"
        may["common/fetch"] = "common/base"
        may["common/index"] = "common/base"
        may["common/sandbox"] = "common/base common/rpc"
        may["common/store"] = "common/base common/rpc common/sandbox"
        may["common/protocol"] = "common/base common/rpc"
        may["common/engine"] = may["common/protocol"] " common/protocol"
        may["common/records"] = may["common/engine"] " common/sandbox common/engine"
        may["common/scheduler"] = may["common/records"] " common/store common/index"
        may["common/jobs"] = may["common/scheduler"] " common/records common/scheduler common/fetch"
        may["common/supervisor"] = may["common/scheduler"] " common/records common/scheduler"
        may["common/broker"] = may["common/jobs"] " common/jobs common/supervisor"
        may["common/mcp"] = "common/base common/rpc common/sandbox"
        may["common/tools"] = "common/base common/rpc common/fetch common/index common/sandbox common/protocol common/mcp"
        may["fcgi"] = may["common/broker"] " common/broker common/mcp common/tools"
        for (folder in may) may[folder] = " " may[folder] " " folder " "
        # Header of a library -> the files that may include it.
        allowed["^curl/"] = "^(common/(engine|fetch|store)/|fcgi/nodes/kubernetes\\.c$)"
        allowed["^fcgi"] = "^fcgi/"
        # docker_stream.c ends one direction of a TLS connection, which libcurl has no call for.
        allowed["^openssl/"] = "^(common/(base/crypto|engine/docker_stream)|fcgi/oauth/server/signing_key)\\.c$"
        allowed["^argon2\\.h$"] = "^fcgi/oauth/server/passphrase\\.c$"
        allowed["^cjose/"] = "^fcgi/oauth/jwks\\.c$"
        allowed["^archive(_entry)?\\.h$"] = "^common/sandbox/archive/(archive_read|archive_write|backup)\\.c$"
        allowed["^seccomp\\.h$"] = "^common/base/privsep_confine\\.c$"
        allowed["^jansson\\.h$"] = "^(common/(rpc|engine|sandbox|store|protocol|records|scheduler|jobs|supervisor|broker|mcp|tools)|fcgi)/"
    }
    function layer(path) {
        if (match(path, /^common\/[^\/]+\//) || match(path, /^fcgi\//))
            return substr(path, 1, RLENGTH - 1)
        return ""
    }
    function complain(why) { print FILENAME ":" FNR ": " why }
    FNR == 1 { first = 1 }
    !/^#[ \t]*include/ { next }
    {
        target = $0
        sub(/^#[ \t]*include[ \t]*/, "", target)
        quoted = target ~ /^"/
        sub(/^["<]/, "", target); sub(/[">].*/, "", target)
        if (FILENAME ~ /\.c$/ && first && target != "config.h") complain("config.h must be included first")
        first = 0
        if (target == "config.h") next
        if (quoted && layer(target) == "") complain("\"" target "\" is not a path from the top")
        if (!quoted && layer(target) in may) complain("<" target "> must be in quotes")
        if (quoted && index(may[layer(FILENAME)], " " layer(target) " ") == 0)
            complain(layer(FILENAME) " may not include " layer(target))
        if (quoted) next
        for (library in allowed)
            if (target ~ library && FILENAME !~ allowed[library])
                complain("<" target "> may not be included here")
    }' "${files[@]}")
verdict "$found" "the layers are in CONTRIBUTING.md; move the code, or pass in what it needs"
