#!/usr/bin/env bash
# The firewall rules of SANDBOX_NETWORK: nftables tables of our own, which only refuse. Needs root, on the engine's host.
# The bridges of the engine's networks sandcgi-public and sandcgi-lan are named sgpub-… and sglan-….
set -euo pipefail

usage()
{
    cat <<'END'
usage: network.sh install [DNS-SERVER…] | remove | show

  install   puts the rules in place, for all sandcgi servers of this machine; again: replaces them. Containers on
            sandcgi-public may reach port 53 of the servers named here, even if their addresses are private
  remove    takes them away; calls with network: true are refused from then on
  show      prints them
END
}

# The special addresses of common/base/address.c (tests/lint/addresses.py compares).
readonly special4='0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 168.63.129.16, 169.254.0.0/16, 172.16.0.0/12,
            192.0.0.0/24, 192.0.2.0/24, 192.31.196.0/24, 192.52.193.0/24, 192.88.99.0/24, 192.168.0.0/16, 192.175.48.0/24,
            198.18.0.0/15, 198.51.100.0/24, 203.0.113.0/24, 224.0.0.0/3'
# Of 2000::/3, which holds all unicast addresses in use. 2002::/16 carries IPv4 addresses.
readonly special6='2001::/23, 2001:db8::/32, 2002::/16, 2620:4f:8000::/48, 3ffe::/16, 3fff::/20'

# dns_rules ADDRESS…
dns_rules()
{
    local server family
    for server in "$@"; do
        family=ip
        [[ $server != *:* ]] || family=ip6
        printf '        %s daddr %s meta l4proto { tcp, udp } th dport 53 accept\n' "$family" "$server"
    done
}

# Refused, not dropped: a program fails at once, and the server's probe knows the rule by its answer. The priority is in
# front of other tables', but nothing here allows what they refuse. "ct status dnat": a published port of a container.
rules()
{
    cat <<END
table inet sandcgi
delete table inet sandcgi
table inet sandcgi {
    chain dns {
$(dns_rules "$@")
    }
    chain public {
        jump dns
        ip daddr { $special4 } reject with icmpx admin-prohibited
        ip6 daddr != 2000::/3 reject with icmpx admin-prohibited
        ip6 daddr { $special6 } reject with icmpx admin-prohibited
        ct status dnat reject with icmpx admin-prohibited
    }
    chain forward {
        type filter hook forward priority filter - 10
        iifname "sgpub-*" jump public
        iifname "sglan-*" oifname "sglan-*" reject with icmpx admin-prohibited
        oifname "sgpub-*" ct state new reject with icmpx admin-prohibited
        oifname "sglan-*" ct state new reject with icmpx admin-prohibited
    }
    chain input {
        type filter hook input priority filter - 10
        iifname "sgpub-*" icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
        iifname "sgpub-*" jump dns
        iifname "sgpub-*" reject with icmpx admin-prohibited
    }
}
END
}

# Between containers on one bridge, whatever the protocol.
bridge_rules()
{
    cat <<'END'
table bridge sandcgi
delete table bridge sandcgi
table bridge sandcgi {
    chain forward {
        type filter hook forward priority filter
        meta ibrname "sgpub-*" drop
        meta ibrname "sglan-*" drop
    }
}
END
}

# Older kernels show a bridge's packets to the rules above instead, when they are told to, as Docker does, too.
install()
{
    rules "$@" | nft -f -
    bridge_rules | nft -f - 2>/dev/null && return
    modprobe br_netfilter 2>/dev/null || true
    sysctl -qw net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1
}

main()
{
    PATH=$PATH:/usr/sbin:/sbin
    case ${1:-} in
    install)
        shift
        install "$@"
        ;;
    remove)
        printf 'table inet sandcgi\ndelete table inet sandcgi\n' | nft -f -
        ! nft list table bridge sandcgi >/dev/null 2>&1 || nft delete table bridge sandcgi
        ;;
    show) nft list table inet sandcgi && { nft list table bridge sandcgi 2>/dev/null || true; } ;;
    *)
        usage
        exit 2
        ;;
    esac
}

main "$@"
