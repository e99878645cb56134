"""What can be worked out about the laws without running them.

One file a topic: `loops` (frequency responses, margins, convex hulls, whatever the law), then a
file a protocol: `maxnet` and `certificate` (maxnet-2007 §VIII), `aecp` and `sampled` (aecp-2010
§4 and the loop with its sampling times), `xcp` and `equilibrium` (the fixed point of XCP, iXCP
and P-XCP on any network), `rcp`, `vcp`, `jetmax`; `encoding` (header fields), `subject` (what a
command is asked about), `plots` and `documents` (what `--json` prints).

Frequencies are in rad/s, times in s, rates in bit/s, gains without a unit.
"""
