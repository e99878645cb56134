"""The testbed: a scenario on the running Linux kernel, in namespaces of its own on one machine.

Reading order: `plan` (what to build for a scenario; no I/O), `isolate` (a process tree that leaves
nothing behind), `topology` (builds the plan), `delayline` and `flows` (the processes), `netlink`
and `sampling` (what the kernel says), `inside` (the tree's run), `front` (its parent), `checks`
(whether to believe it), `outcome` (samples to figures), `backend` (all of it as `run`).
docs/testbed.md says what it measures and how well.
"""
