"""Flow completion times of web-search traffic in two fabrics, for every law.

All hosts send to all others at 30, 60 and 80 % of what they can, in flows whose sizes are those of
a web-search cluster (`sizes = "web-search"`). The leaf-spine has 4 leaves, 4 spines and 32 hosts,
the fat-tree 8-port switches and 128 hosts; every link has 1 Gbit/s and 5 us. Flows arrive for a
while, then the network drains. Each law sees the same arrivals for a seed.
"""
