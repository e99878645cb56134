"""Loss recovery of the simulator's `rack`, compared with Linux's TCP."""
