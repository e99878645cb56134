"""HPCC and PowerTCP next to their code in ns-3, with the same networks, flows and parameters.

The ns-3 is that of PowerTCP's authors (inet-tub/ns3-datacenter), which also has HPCC. Its program
`powertcp-evaluation-burst` runs as it is: it reads a topology, a list of flows and settings, and
writes completion times. docs/validation/fabric-ns3.md says how to build it.
"""
