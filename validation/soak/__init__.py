"""A soak of `waterfilld`: traffic, reloads and kills for an hour, and what they leave behind.

Run as root: `python -m validation.soak` (`make soak`). Reading order: `__main__` (the course of a
run), `service` (the daemon), `network` and `traffic` (what it serves), `objects` and `watch` (what
is observed), `verdict` (what is required of it).
"""
