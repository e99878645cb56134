"""Equations of the laws' fixed-point versions in integer arithmetic, checked against
kernel logs.
"""
