"""The testbed: a scenario on the running Linux kernel, in namespaces of its own on one machine.

Reading order: `plan` (what to build for a scenario; no I/O), `isolate` (a process tree that leaves
nothing behind), `topology` (builds the plan), `daemon` (laws that no kernel has), `delayline` and
`flows` (the processes), `bed` (network, laws and delay line), `netlink` and `sampling` (what the
kernel says), `inside` (the tree's run), `front` (its parent), `checks` (whether to believe it),
`outcome` (samples to figures), `backend` (all of it as `run`).
docs/reference/testbed.md says what it measures and how well.
"""
