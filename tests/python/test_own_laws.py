"""Several laws in Python in one run, with their parameters, signals, marks and measurements."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any, ClassVar

import pytest

import waterfill
from waterfill import LawParam, PythonLaw
from waterfill.analysis.run_charts import PRINT, RunCharts
from waterfill.runs import law_files, laws

FILE = """
import waterfill

class Fixed:
    def __init__(self, connection):
        self.window_bytes = connection.params.packets * connection.packet_bytes
        self.acks = 0

    def on_ack(self, ack):
        self.acks += 1

    def limit(self):
        return self.window_bytes, None

    def observe(self):
        return {"acks": self.acks}

def law(packets):
    given = {"packets": waterfill.LawParam(packets, "count", min=1, max=100, doc="window")}
    return waterfill.PythonLaw(
        source=Fixed, params=given, signals={"acks": "packets"}, paced=False,
        summary="a window that never changes",
    )

LAWS = {"ours-1": law(5), "ours-2": law(10)}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "laws.py"
    path.write_text(FILE)
    return path


def scenario(first: str = "ours-1", second: str = "ours-2") -> waterfill.Scenario:
    found = waterfill.Scenario("two", duration="2 s", protocol=first, measure=["1 s", "2 s"])
    found = found.link("l", "a", "b", "10 Mbit/s", "50 ms")
    return found.flow("one", "a", "b").flow("two", "a", "b", protocol=second)


def rates(result: waterfill.Result) -> list[float]:
    """Return the rates of flows in packets per RTT, rounded."""
    return [round(flow["rate_bps"] * 0.101 / 12e3) for flow in result.summary["flows"]]


# --- several laws ------------------------------------------------------------------------------


def test_two_laws_run_in_one_run(file):
    result = scenario().run(laws=law_files.read(file))
    assert [flow["protocol"] for flow in result.summary["flows"]] == ["ours-1", "ours-2"]
    assert rates(result) == [5, 10]
    assert list(result.summary["laws"]) == ["ours-1", "ours-2"]
    assert result.summary["flows"][0]["max_min_bps"] == pytest.approx(5e6)


def test_a_run_takes_the_laws_that_its_flows_name(file):
    result = scenario("ours-1", "ours-1").run(laws=law_files.read(file))
    assert list(result.summary["laws"]) == ["ours-1"]
    with pytest.raises(waterfill.InputError, match="no flow uses the law ours-1 or ours-2"):
        scenario("reno", "rcp").run(laws=law_files.read(file))


def test_without_a_header_a_law_adds_no_bytes(file):
    own = scenario().run(laws=law_files.read(file))
    tcp = scenario("window", "window").run()
    sizes = [flow["goodput_bps"] / flow["rate_bps"] for flow in own.summary["flows"]]
    assert sizes == pytest.approx([1460 / 1500] * 2)
    assert tcp.summary["flows"][0]["goodput_bps"] / tcp.summary["flows"][0]["rate_bps"] == (
        pytest.approx(sizes[0])
    )


def test_every_command_takes_laws(file, tmp_path, waterfill):
    path = tmp_path / "S.toml"
    path.write_text(scenario().to_toml())
    law = ("--law", str(file))
    ran = waterfill("run", str(path), *law, "--json")
    assert [flow["protocol"] for flow in ran.document["flows"]] == ["ours-1", "ours-2"]
    checked = waterfill("check", str(path), *law, "--json").document
    assert checked["params"]["ours-2"] == {"packets": 10.0}
    assert checked["backends"]["sim"] is None
    assert "fluid cannot run a law in Python" in checked["backends"]["fluid"]
    shares = waterfill("maxmin", str(path), *law, "--json").document["intervals"][0]["flows"]
    assert [flow["rate_bps"] for flow in shares] == [5e6, 5e6]
    for command in ("run", "check", "maxmin", "sweep"):
        words = [str(path), "--set", "flow.two.protocol=ours-3", *law]
        if command == "sweep":
            words += ["--grid", "flow.one.count=1,2"]
        failed = waterfill(command, *words)
        assert failed.code == 2
        assert 'unknown protocol "ours-3", did you mean "ours-1"?' in failed.err
    compared = waterfill(
        "compare", str(path), *law, "--protocols", "ours-1,reno", "--json", "-o", "out"
    )
    assert list(compared.document["runs"]) == ["ours-1", "reno"]
    assert waterfill("report", "out").code == 0
    assert waterfill("run", str(path), *law, "-o", "one").code == 0
    assert waterfill("plot", "one").code == 0
    assert waterfill("report", "one").code == 0


def test_a_misspelled_law_is_named(file, tmp_path, waterfill):
    path = tmp_path / "S.toml"
    path.write_text(scenario().to_toml())
    words = ("--set", "flow.one.protocol=our-1", "--set", "flow.two.protocol=reno")
    ran = waterfill("run", str(path), *words, "--law", str(file))
    assert (ran.code, 'unknown protocol "our-1", did you mean "ours-1"?' in ran.err) == (2, True)
    words = (str(path), "--protocols", "my-own-law")
    for command in (("compare", *words), ("protocols", "my-own-law")):
        assert waterfill(*command).err.endswith("; a law of your own: --law FILE\n")


def test_a_name_of_a_protocol_is_refused(file, tmp_path, waterfill):
    file.write_text(FILE + 'LAWS["cubic"] = law(3)\n')
    path = tmp_path / "S.toml"
    path.write_text(scenario().to_toml())
    for command in ("run", "compare", "check", "sweep", "protocols"):
        words = [] if command == "protocols" else [str(path)]
        ran = waterfill(command, *words, "--law", str(file))
        said = f"{file}: laws.cubic: is the name of a protocol; choose another"
        assert (ran.code, ran.err.strip().splitlines()[-1]) == (2, said)


def test_what_raises_is_named(file):
    class Broken(law_files.read(file)["ours-1"].source):  # type: ignore[misc]
        def limit(self) -> Any:
            return "wide", None

    found = law_files.read(file)
    found["ours-2"] = PythonLaw(source=Broken, params=found["ours-2"].params)
    with pytest.raises(waterfill.InputError, match=r"laws\.ours-2: TypeError: limit: must return"):
        scenario().run(laws=found)


# --- sweeps ------------------------------------------------------------------------------------


def test_a_sweep_runs_laws_in_its_workers(file, tmp_path, waterfill):
    path = tmp_path / "S.toml"
    text = scenario().set(measure=["0.5 s", "1 s"]).to_toml().replace('protocol = "ours-2"\n', "")
    path.write_text(text)
    words = ["sweep", str(path), "--law", str(file), "--protocols", "ours-1,ours-2,reno"]
    words += ["--grid", "duration=1 s,2 s", "--workers", "1", "--json", "-o", "swept"]
    ran = waterfill(*words)
    assert ran.code == 0, ran.err
    table = waterfill_table()
    assert {row["protocol"] for row in table} == {"ours-1", "ours-2", "reno"}
    mine = {row["protocol"]: row["rate_min_bps"] for row in table if row["duration"] == 2.0}
    assert mine["ours-2"] == pytest.approx(2 * mine["ours-1"], rel=0.02)
    # Finished points are found again, until the law's code changes.
    keys = {row["key"] for row in table}
    assert waterfill(*words).code == 0
    assert {row["key"] for row in waterfill_table()} == keys
    file.write_text(FILE.replace("self.acks += 1", "self.acks += 2"))
    assert waterfill(*words).code == 2  # another sweep than the directory's


def waterfill_table() -> list[dict[str, Any]]:
    import pyarrow.dataset as ds

    rows: list[dict[str, Any]] = ds.dataset("swept/points").to_table().to_pylist()
    return rows


def test_laws_survive_their_way_to_a_worker(file):
    found = law_files.read(file)
    again = law_files.unpack(law_files.pack(found))
    assert rates(scenario().run(laws=again)) == [5, 10]
    assert law_files.identity(found) == law_files.identity(law_files.read(file))
    changed = {**found, "ours-1": PythonLaw(source=found["ours-1"].source, params={})}
    assert law_files.identity(changed) != law_files.identity(found)
    mine = PythonLaw(source=Unsendable)
    with pytest.raises(waterfill.InputError, match="cannot be sent to the workers: TypeError"):
        law_files.pack({"mine": mine})


class Unsendable:
    """A law whose class holds a lock, which no process can send to another."""

    lock: ClassVar[Any] = threading.Lock()

    def on_ack(self, ack: Any) -> None: ...

    def limit(self) -> Any:
        return 1.0, None


# --- parameters --------------------------------------------------------------------------------


def test_parameters_are_set_checked_and_listed(file, tmp_path, waterfill):
    found = law_files.read(file)
    result = scenario().params("ours-1", packets=7).run(laws=found)
    assert rates(result) == [7, 10]
    assert result.summary["params"] == {"ours-1": {"packets": 7.0}, "ours-2": {"packets": 10.0}}
    for value, said in (
        (0, "params.ours-1.packets: must be at least 1, got 0"),
        (101, "params.ours-1.packets: must be at most 100, got 101"),
        ("many", "params.ours-1.packets: must be a whole number"),
    ):
        with pytest.raises(waterfill_error(), match=said):
            scenario().params("ours-1", packets=value).run(laws=found)
    with pytest.raises(
        waterfill_error(), match='unknown parameter of ours-1, did you mean "packets"'
    ):
        scenario().params("ours-1", packet=3).run(laws=found)
    listed = waterfill("protocols", "ours-2", "--law", str(file), "--json").document
    assert listed[0]["params"][0]["default"] == 10.0
    assert (listed[0]["kind"], listed[0]["header_bytes"]) == ("end-to-end", 0)
    assert "a window that never changes" in " ".join(
        waterfill("protocols", "--law", str(file)).out.split()
    )
    path = tmp_path / "S.toml"
    path.write_text(scenario("ours-1", "ours-1").to_toml())
    idle = waterfill("run", str(path), "--law", str(file), "--set", "params.ours-2.packets=3")
    assert idle.code == 2
    assert "params.ours-2.packets: no effect: no flow runs ours-2; remove it" in idle.err


def waterfill_error() -> type[waterfill.InputError]:
    return waterfill.InputError


@pytest.mark.parametrize(("unit", "kind"), [("s", "time"), ("Mbit/s", "rate"), ("kB", "volume")])
def test_a_unit_in_place_of_its_quantity_has_advice(unit, kind):
    found = {"mine": PythonLaw(source=Unsendable, params={"delta": LawParam(1, unit)})}
    advice = f'got "{unit}"; for {unit} write "{kind}"; numbers are in SI units'
    with pytest.raises(waterfill.InputError, match=advice):
        laws.check(found, {})


@pytest.mark.parametrize(
    ("param", "sentence"),
    [
        (5, 'must be a waterfill.LawParam, got "int"'),
        (LawParam(1, "bytes"), "unit: must be one of ratio, rate, time, volume, packets, count"),
        (LawParam(1, "ratio", min=2), "default: must be at least 2, got 1"),
        (LawParam("5 parsecs", "time"), "default: "),
        (LawParam("a", "choice"), "choices: must not be empty for a choice"),
        (LawParam("a", "choice", choices=("b",)), 'default: must be one of "b", got "a"'),
        (LawParam(1, "flag"), "default: must be true or false, got 1"),
    ],
)
def test_a_wrong_parameter_is_refused(param, sentence):
    found = {"mine": PythonLaw(source=Unsendable, params={"delta": param})}
    with pytest.raises(waterfill.InputError) as error:
        laws.check(found, {})
    assert str(error.value).startswith(
        f"run: laws.mine.params.delta{': ' if isinstance(param, int) else '.'}{sentence}"
    )


def test_router_and_receiver_have_the_parameters():
    seen: list[Any] = []

    class Router:
        def __init__(self, link: Any) -> None:
            seen.append(("router", link.params.wait))

        def on_arrival(self, link: Any, passing: Any) -> None: ...

    class Receiver:
        def __init__(self, params: Any) -> None:
            seen.append(("receiver", params.wait))

        def on_data(self, received: Any) -> None: ...

        def echo(self, now_s: float) -> None: ...

    own = PythonLaw(
        source=Unsendable,
        router=Router,
        receiver=Receiver,
        params={"wait": LawParam("5 ms", "time")},
    )
    one = waterfill.Scenario("one", duration="1 s", protocol="mine")
    one = one.link("l", "a", "b", "10 Mbit/s", "50 ms").flow("f", "a", "b")

    class Quiet(Unsendable):
        def __init__(self, connection: Any) -> None: ...

    one.params("mine", wait="20 ms").run(laws={"mine": PythonLaw(
        source=Quiet, router=Router, receiver=Receiver, params=own.params)})  # fmt: skip
    assert seen == [("router", 0.02), ("receiver", 0.02)]


# --- signals -----------------------------------------------------------------------------------


def test_signals_are_columns_of_the_series(file, tmp_path):
    result = scenario().run(laws=law_files.read(file))
    rows = result.samples("flows", "two").to_pylist()
    name = "ours-2_acks"
    assert rows[-1][name] == pytest.approx(10 * 2 / 0.101, rel=0.1)
    assert rows[0][name] < rows[-1][name]
    result.write(tmp_path / "run")
    again = waterfill.load(tmp_path / "run")
    assert again.samples("flows", "two").to_pylist()[-1][name] == rows[-1][name]


def test_a_signal_is_drawn_with_its_unit(file):
    drawn = RunCharts(scenario().run(laws=law_files.read(file)), PRINT).signals()
    (chart,) = (chart for chart in drawn if chart.key == "flows-ours-2-acks")
    assert chart.y_label == "ours-2 acks (packets)"


@pytest.mark.parametrize(
    ("first", "second"),
    [(("rate", "bps"), ("b", "acks")), (("cohabit", "drops"), ("b", "acks")),
     (("a_b", "acks"), ("a", "b_acks"))],
)  # fmt: skip
def test_a_signal_needs_a_column_of_its_own(file, first, second):
    ours = law_files.read(file)["ours-1"]
    given = {law: replace(ours, signals={signal: ""}) for law, signal in (first, second)}
    column = "_".join(first)
    said = rf"laws\.\w+\.signals\.\w+: the column {column} exists already; choose another name"
    with pytest.raises(waterfill.InputError, match=said):
        scenario(first[0], second[0]).run(laws=given)


def test_an_unknown_signal_is_refused(file):
    found = law_files.read(file)
    source = found["ours-1"].source
    wrong = type("Wrong", (source,), {"observe": lambda _: {"ack": 1.0}})
    own = PythonLaw(source=wrong, params=found["ours-1"].params, signals={"acks": ""})
    said = r'laws\.ours-1: ValueError: observe: unknown signal "ack"; known: acks'
    with pytest.raises(waterfill.InputError, match=said):
        scenario().run(laws={**found, "ours-1": own})


# --- marks and measurements --------------------------------------------------------------------


class Watching:
    """Law with a window of 20 packets that records its calls."""

    acks: ClassVar[list[Any]] = []
    events: ClassVar[list[str]] = []

    def __init__(self, connection: Any) -> None:
        self.window_bytes = 20 * connection.packet_bytes
        self.acks.clear()
        self.events.clear()

    def on_ack(self, ack: Any) -> None:
        self.acks.append(ack)

    def on_event(self, now_s: float, event: str) -> None:
        self.events.append(event)

    def limit(self) -> tuple[float | None, float | None]:
        return self.window_bytes, None


@pytest.mark.parametrize("ecn", ["off", "classic", "accurate", "l4s"])
def test_marks_reach_a_law_that_declares_them(ecn):
    own = {"mine": PythonLaw(source=Watching, ecn=ecn, paced=False)}
    found = waterfill.Scenario("marks", duration="4 s", protocol="mine")
    found = found.link("l", "a", "b", "4 Mbit/s", "20 ms", queue="codel", buffer="100 packets")
    found = found.flow("f", "a", "b", ecn=True)
    if ecn == "off":
        with pytest.raises(waterfill.InputError, match="ecn: must be false, because mine does not"):
            found.run(laws=own)
        return
    result = found.run(laws=own)
    assert result.summary["links"][0]["marks"] > 5
    assert result.summary["links"][0]["drops"] == 0
    assert "marked" in Watching.events
    assert "loss" not in Watching.events
    marked = sum(ack.marked_bytes for ack in Watching.acks) / 1500
    assert marked >= result.summary["links"][0]["marks"] - 60


def test_a_law_gets_losses_rates_and_rounds():
    own = {"mine": PythonLaw(source=Watching, paced=False)}
    found = waterfill.Scenario("drops", duration="4 s", protocol="mine", measure=["0 s", "4 s"])
    found = found.link("l", "a", "b", "4 Mbit/s", "20 ms", loss=0.01).flow("f", "a", "b")
    result = found.run(laws=own, seed=5)
    acks = Watching.acks
    lost = sum(ack.lost_bytes for ack in acks) / 1500
    assert lost == pytest.approx(result.summary["flows"][0]["retransmissions"], abs=1)
    assert lost > 5
    rates = [ack.delivery_rate_bps for ack in acks if ack.delivery_rate_bps is not None]
    assert sorted(rates)[len(rates) // 2] == pytest.approx(4e6, rel=0.01)
    assert not any(ack.app_limited for ack in acks)
    rounds = [ack.round for ack in acks]
    assert rounds == sorted(rounds)
    # 20 packets at 4 Mbit/s are 60 ms.
    assert rounds[-1] == pytest.approx(4 / 0.06, rel=0.1)
    later = [ack for ack in acks if ack.sent_s is not None]
    assert len(later) > 0.9 * len(acks)
    assert all(ack.now_s - ack.sent_s == pytest.approx(ack.rtt_s) for ack in later)
    assert later[-1].sent_in_flight_bytes == pytest.approx(19 * 1500)
    assert 0 < later[-1].delivered_bytes - later[-1].sent_delivered_bytes < 22 * 1500


class Losing(Watching):
    """The same, and it records each packet and each loss by its time of sending."""

    sent_s: ClassVar[list[float]] = []
    lost: ClassVar[list[tuple[float, float]]] = []

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.sent_s.clear()
        self.lost.clear()

    def stamp(self, sending: Any) -> dict[str, float]:
        self.sent_s.append(sending.now_s)
        return {}

    def on_lost(self, now_s: float, sent_s: float) -> None:
        self.lost.append((now_s, sent_s))


@pytest.mark.parametrize("recovery", ["rack", "quic", "rfc6675"])
def test_a_law_gets_the_time_of_sending_of_each_lost_packet(recovery):
    own = {"mine": PythonLaw(source=Losing, paced=False)}
    found = waterfill.Scenario("drops", duration="4 s", protocol="mine", measure=["0 s", "4 s"])
    found = found.link("l", "a", "b", "4 Mbit/s", "20 ms", loss=0.01)
    result = found.flow("f", "a", "b", recovery=recovery).run(laws=own, seed=5)
    flow = result.summary["flows"][0]
    if recovery == "rfc6675":
        assert Losing.lost == []
        return
    assert flow["timeouts"] == 0
    assert len(Losing.lost) == pytest.approx(flow["retransmissions"], abs=1)
    assert len(Losing.lost) > 5
    assert {sent_s for _, sent_s in Losing.lost} <= set(Losing.sent_s)
    # The RTT is 43 ms, and 100 ms with a window of 20 packets in the queue.
    assert all(0.043 <= now_s - sent_s < 0.1 for now_s, sent_s in Losing.lost)
    lost_bytes = [ack.sent_lost_bytes for ack in Losing.acks if ack.sent_lost_bytes is not None]
    assert lost_bytes == sorted(lost_bytes)
    assert lost_bytes[-1] == pytest.approx(1500 * len(Losing.lost), abs=1500)


def test_a_law_gets_pauses_of_the_application():
    own = {"mine": PythonLaw(source=Watching, paced=False)}
    found = waterfill.Scenario("slow", duration="4 s", protocol="mine")
    found = found.link("l", "a", "b", "4 Mbit/s", "20 ms")
    found.flow("f", "a", "b", demand="60 kbit/s").run(laws=own)
    assert Watching.events.count("idle_restart") > 10
    assert all(ack.app_limited for ack in Watching.acks[2:])


# --- installed packages ------------------------------------------------------------------------


class Registered(Watching):
    """A law of a package."""


LAW = PythonLaw(source=Registered, paced=False, summary="a law of a package")


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints(
        [
            EntryPoint("packaged", f"{__name__}:LAW", law_files.GROUP),
            EntryPoint("missing", "no_such_module:LAW", law_files.GROUP),
        ]
    )
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points.select(group=group))
    assert __name__ in sys.modules


@pytest.mark.usefixtures("package")
def test_installed_packages_register_laws():
    result = scenario("packaged", "reno").run()
    assert [flow["protocol"] for flow in result.summary["flows"]] == ["packaged", "reno"]
    assert scenario("packaged", "reno").check()["flows"][0]["protocol"] == "packaged"
    with pytest.raises(
        waterfill.InputError, match="entry point missing = no_such_module:LAW: cannot"
    ):
        scenario("missing", "reno").run()
    with pytest.raises(waterfill.InputError, match='unknown protocol "nothing"'):
        scenario("nothing", "reno").run()


@pytest.mark.usefixtures("package")
def test_an_installed_law_compares():
    one = waterfill.Scenario("one", duration="1 s").link("l", "a", "b", "10 Mbit/s", "50 ms")
    found = one.flow("f", "a", "b").compare(["packaged", "reno"])
    assert list(found.results) == ["packaged", "reno"]


@pytest.mark.usefixtures("package")
def test_a_sweep_knows_the_code_of_an_installed_law(monkeypatch):
    from waterfill.sweeps.plan import SweepSpec, plan

    one = waterfill.Scenario("one", duration="1 s", protocol="rcp").link(
        "l", "a", "b", "10 Mbit/s", "50 ms"
    )
    one = one.flow("f", "a", "b")

    def identity(name: str) -> str:
        return plan(one, SweepSpec(protocols=name, seeds=1)).design.identity

    before, other = identity("packaged"), identity("reno")
    assert identity("packaged") == before
    monkeypatch.setattr(Registered, "LIMIT", 3, raising=False)
    assert identity("packaged") != before
    assert identity("reno") == other


def test_two_packages_with_one_law_are_refused(monkeypatch):
    points = EntryPoints([EntryPoint("twice", f"{__name__}:LAW", law_files.GROUP)] * 2)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    with pytest.raises(waterfill.InputError, match="two installed packages register this law"):
        scenario("twice", "reno").run()
