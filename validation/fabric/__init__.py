"""Laws in fabrics of 100 and 400 Gbit/s: slowdowns against the load, and incasts.

A fat-tree of 128 hosts carries web-search or Hadoop flows at loads of 30, 60 and 80 %. Incasts of
64 and 255 flows arrive on top of web-search flows at 30 %. All laws have the same arrivals, hosts
without a handshake, switches that hash flows, and the constants of `profile = "datacenter"`.
"""
