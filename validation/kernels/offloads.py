"""Turn off the offloads of network devices in the present namespace: `python offloads.py DEVICE
...`.

The delay line takes frames before a network card would complete their checksums or cut them into
segments. A file of its own, as `ip netns exec` starts it and not every host has ethtool.
"""

import fcntl
import socket
import struct
import sys
from array import array

_SIOCETHTOOL = 0x8946
# ethtool's commands to set transmit checksums, TSO, GSO, GRO.
_COMMANDS = (0x17, 0x1F, 0x24, 0x2C)


def main() -> None:
    """Switch off all offloads of every device on the command line.

    Raises OSError if the kernel refuses.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for device in sys.argv[1:]:
            for command in _COMMANDS:
                value = array("B", struct.pack("=II", command, 0))
                request = struct.pack("16sP", device.encode(), value.buffer_info()[0])
                fcntl.ioctl(asked, _SIOCETHTOOL, request + bytes(16))


if __name__ == "__main__":
    main()
