#!/usr/bin/env python3
"""The firewall rules of nginx/setup/network.sh refuse every special address of common/base/address.c."""
import ipaddress
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def text(path):
    with open(f"{TOP}/{path}", encoding="utf-8") as file:
        return file.read()


def main():
    rules = text("nginx/setup/network.sh")
    refused = [ipaddress.ip_network(word) for name in ("special4", "special6")
               for word in re.split(r"[,\s]+", re.search(rf"readonly {name}='([^']*)'", rules)[1])]
    special = [(ipaddress.ip_network(f"{base}/{bits}"), kind)
               for base, bits, kind in re.findall(r'\{"([0-9a-f.:]+)", (\d+), ADDRESS_(\w+)\}', text("common/base/address.c"))]
    missing = [str(net) for net, kind in special if kind != "PUBLIC" and net.version == 4
               and not any(r.version == 4 and net.subnet_of(r) for r in refused)]
    unicast = ipaddress.ip_network("2000::/3")  # all else is refused by a rule of its own
    missing += [str(net) for net, kind in special if kind != "PUBLIC" and net.version == 6 and net.subnet_of(unicast)
                and not any(r.version == 6 and net.subnet_of(r) for r in refused)]
    if len(special) < 25 or missing:
        sys.exit(f"nginx/setup/network.sh does not refuse: {', '.join(missing) or 'the table of address.c is not readable'}")


main()
