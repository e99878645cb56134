"""The testbed, which runs a scenario on the Linux kernel of one host, in its own namespaces.

Reading order: `plan` (what to build for a scenario; no I/O), `isolate` (a process tree that leaves
nothing behind), `topology` (builds the plan), `daemon` (laws that are loaded into the kernel),
`delayline` and `flows` (the processes), `bed` (network, laws and delay line together), `netlink`
and `sampling` (the kernel's counters), `inside` (the run, in the process tree), `front` (its
parent), `checks` (whether the run is valid), `outcome` (samples to results), `backend` (`run`).
docs/reference/testbed.md says what it measures and how accurately.
"""
