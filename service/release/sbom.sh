#!/usr/bin/env bash
# Prints what is inside the files of a release as CycloneDX 1.5 (JSON): service/release/sbom.sh VERSION FOLDER
# FOLDER: of each file of the release its list, lines "NAME VERSION ARCHITECTURE" of Debian packages.
set -euo pipefail

readonly version=$1 folder=$2
# shellcheck source=/dev/null
distribution=$(. /etc/os-release && echo "${ID:-debian}")

cd "$folder"
shopt -s nullglob
lists=(*)
((${#lists[@]})) || lists=(/dev/null)
awk -v "version=$version" -v "distribution=$distribution" '
    # Names and versions of packages have no other character that JSON or a URL gives a meaning.
    function quoted(text) { gsub(/["\\]/, "\\\\&", text); return "\"" text "\"" }
    function escaped(text) { gsub(/%/, "%25", text); gsub(/\+/, "%2B", text); gsub(/:/, "%3A", text); return text }
    function end_file() { if (inside) print "\n    ]}"; inside = 0 }
    BEGIN {
        print "{\n  \"bomFormat\": \"CycloneDX\",\n  \"specVersion\": \"1.5\",\n  \"version\": 1,"
        print "  \"metadata\": {\"component\": {\"type\": \"application\", \"bom-ref\": \"sandcgi\", \"name\": \"sandcgi\", \"version\": " quoted(version) "}},"
        printf "  \"components\": ["
    }
    NF != 3 { print FILENAME ":" FNR ": not a name, a version, an architecture" >"/dev/stderr"; bad = 1; exit 1 }
    FNR == 1 {
        end_file()
        image = FILENAME ~ /\.tar\.gz$/
        printf "%s\n    {\"type\": %s, \"bom-ref\": %s, \"name\": %s, \"version\": %s, \"components\": [", (files++ ? "," : ""),
            (image ? "\"container\"" : "\"application\""), quoted(FILENAME), quoted(FILENAME), quoted(version)
        inside = 1
    }
    {
        url = "pkg:deb/" (image ? "debian" : distribution) "/" escaped($1) "@" escaped($2) "?arch=" $3
        printf "%s\n      {\"type\": \"library\", \"bom-ref\": %s, \"name\": %s, \"version\": %s, \"purl\": %s}", (FNR > 1 ? "," : ""),
            quoted(FILENAME "/" url), quoted($1), quoted($2), quoted(url)
    }
    END { if (!bad) { end_file(); print "\n  ]\n}" } }' "${lists[@]}"
