"""Small requests: both ends on loopback, and the summary and table of made-up counters."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from validation.testbed import requests
from validation.testbed.requests import RequestCase


@pytest.mark.parametrize("workload", requests.WORKLOADS)
def test_both_ends_exchange_messages_over_loopback(workload, monkeypatch):
    monkeypatch.setattr(requests, "WARM_S", 0.01)
    monkeypatch.setattr(requests, "MEASURED_S", 0.05)
    serve, work = requests.ENDS[workload]
    listener = socket.create_server(("127.0.0.1", 0), backlog=requests.CONNECTIONS)
    server = os.fork()
    if server == 0:
        signal.alarm(10)
        try:
            serve(listener, "reno")
        finally:
            os._exit(0)
    address = listener.getsockname()
    listener.close()
    counts = iter(["before", "after"])
    found = work(lambda: socket.create_connection(address), lambda: next(counts))
    _, status = os.waitpid(server, 0)
    assert status == 0
    assert (found["before"], found["after"]) == ("before", "after")
    assert found["took_s"] >= 0.05
    if workload == "requests":
        assert found["done"] % requests.CONNECTIONS == 0 < found["done"]


def ends(client, server):
    names = ("InSegs", "TCPHPHits", "TCPHPAcks")
    return {end: dict(zip(names, values, strict=True))
            for end, values in (("client", client), ("server", server))}  # fmt: skip


def test_cpu_time_is_of_both_ends_and_headers_are_of_the_receivers():
    found = {"done": 1000, "took_s": 3.0, "cpu_s": 0.006, "before": ends((1, 2, 3), (0, 0, 0)),
             "after": ends((1001, 2, 3), (1000, 500, 9))}  # fmt: skip
    both = requests.summary(RequestCase("requests", "CUBIC", 0), found, server_s=0.007)
    assert both == pytest.approx({"per_s": 1000 / 3, "cpu_us": 12.0, "predicted": 0.25})
    bulk = requests.summary(RequestCase("packets", "CUBIC", 0), found, server_s=0.0)
    assert bulk == pytest.approx({"per_s": 1000 / 3, "cpu_us": 6.0, "predicted": 0.5})


def test_the_table_has_medians_over_turns():
    def one(cpu_us):
        return {"per_s": 4e4, "cpu_us": cpu_us, "predicted": 0.5, "under": 1, "host_load": 2.0}

    case = RequestCase("packets", "client only", 0)
    text = requests.table({case._replace(turn=n): one(us) for n, us in enumerate((5.0, 1.0, 2.0))})
    row = "| packets | client only | 40.0 | 2.00 | 1.00 to 5.00 | 50% | 1 | 2 |"
    assert text.splitlines()[2:] == [row]
