"""A soak of `waterfilld`: traffic, reloads and kills for an hour, and their leftovers.

Reading order: `study` (the course of a run), `service` (the daemon), `network` and `traffic` (what
it serves), `objects` and `watch` (what is observed), `verdict` (what is required of it).
"""
