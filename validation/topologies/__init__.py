"""Run the explicit laws on networks of the Topology Zoo and SNDlib, and compare them with max-min.

Networks are the 203 of the Topology Zoo with gravity demands and the 26 of SNDlib with their own,
as the package topohub has them; the busiest link is asked for 1.5 of its rate (`cases`). Each law
that the fluid backend has runs until it is settled, and the mean rate of each flow over the last
fifth is compared to its exact max-min share (`running`). Every flow that is off by more than 2 % is
given a reason, with a number as evidence (`reasons`, `report`). docs/validation/topologies.md has
the results.
"""
