"""Equations of the laws' fixed-point versions, in whole numbers, and the kernel's logs of them."""
