"""Checks of sweeps: cost, scaling, and results after processes are killed.

python -m validation.sweep.scale      two workers against one, and the overhead per point
python -m validation.sweep.kills      workers, scheduler and front end killed at random
python -m validation.sweep.hosts      two network namespaces, a scheduler in one of them; root
python -m validation.sweep.slurm      SLURM with two one-core nodes on this host; root
"""
