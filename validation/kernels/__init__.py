"""Boot Debian's kernels under QEMU and run the daemon on them.

In reading order: `debian` finds and unpacks kernel packages, `image` packs a guest's files,
`guest` boots it, `checks.sh` runs inside (and on the running kernel, in namespaces of its own) and
prints facts, `judge` turns facts into verdicts, `page` writes docs/reference/kernels.md.
"""
