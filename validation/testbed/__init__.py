"""Measurements on the running kernel, as root.

`delay_line` (the delay line by each way that frames can reach it), `tcp_table` (the kernel's TCPs
beside the simulator's), `maxnet` (MaxNet in the kernel; its cells, special cases and plots).
"""
