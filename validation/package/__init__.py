"""Install, upgrade and remove the Debian package in fresh root file systems.

`roots` makes the roots with mmdebstrap, `install.sh` runs in a chroot of each, `units.sh` in a QEMU
guest that systemd has booted. Both print facts, lines `@@ KEY VALUE`, which `judge` reads.
"""
