#!/usr/bin/env bash
# Include arrows: a layer uses itself and the layers below it, by paths from the top; each outside library is included
# in its own place only; config.h comes first in every .c.
. "$(dirname "$0")/common.sh"

mapfile -t files < <(c_files common fcgi)

found=$(awk '
    BEGIN {
        # Lowest first.
        n = split("common/base common/fetch common/rpc common/index common/engine common/sandbox common/broker common/mcp common/tools fcgi", order, " ")
        for (i = 1; i <= n; i++) rank[order[i]] = i
        # Header of a library -> the files that may include it.
        allowed["^curl/"] = "^common/(engine|fetch)/"
        allowed["^fcgi"] = "^fcgi/"
        # docker_stream.c ends one direction of a TLS connection, which libcurl has no call for.
        allowed["^openssl/"] = "^common/(base/crypto|engine/docker_stream)\\.c$"
        allowed["^magic\\.h$"] = "^common/sandbox/media\\.c$"
        allowed["^archive(_entry)?\\.h$"] = "^common/sandbox/archive_(read|write)\\.c$"
        allowed["^jansson\\.h$"] = "^(common/(rpc|engine|sandbox|broker|mcp|tools)|fcgi)/"
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
        if (!quoted && layer(target) in rank) complain("<" target "> must be in quotes")
        if (quoted && rank[layer(target)] > rank[layer(FILENAME)])
            complain(layer(FILENAME) " may not use " layer(target) ", which is above it")
        if (quoted) next
        for (library in allowed)
            if (target ~ library && FILENAME !~ allowed[library])
                complain("<" target "> may not be included here")
    }' "${files[@]}")
verdict "$found" "the layers are in CONTRIBUTING.md; move the code, or pass in what it needs"
