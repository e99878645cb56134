"""Measurements on the running kernel, which need root.

`delay_line` measures the delay line for each way of receiving frames. `tcp_table` compares the
kernel's TCPs with the simulator's. `maxnet` compares MaxNet in the kernel with its requirements;
its scenarios are in `maxnet_cells`, what no scenario can express in `maxnet_special`.
"""
