"""Try to reach anything at all; fail if something answers."""
import os
import socket
import sys

addresses = [("127.0.0.1", int(sys.argv[1])), ("127.0.0.1", 53), ("1.1.1.1", 443), ("2606:4700:4700::1111", 443)]
for address in addresses:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(2)
        try:
            s.connect(address)
        except OSError:
            continue
        sys.exit("reached " + address[0])
links = [name for name in os.listdir("/sys/class/net") if name != "lo"]
if links:
    sys.exit("there are network interfaces: " + ", ".join(links))
print("probed", len(addresses), "addresses, reached none")
