"""Soak test of `waterfilld`: an hour of traffic with reloads and kills, and a search for leftovers.

Reading order: `study` (the course of a run), `service` (the daemon), `network` and `traffic` (what
it serves), `objects` and `watch` (what is observed), `verdict` (what is required of it).
"""
