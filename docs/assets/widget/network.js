// Networks of widgets: changes of a resolved network by sliders, and its max-min shares.
//
// Python resolves a scenario when the site is built (tools/site_widgets.py). `changed` repeats the
// part of waterfill.network.resolve that depends on sliders, `shares` waterfill.network.maxmin for
// flows without demands. Tests compare both with Python.
"use strict";
(() => {
  const waterfill = (globalThis.waterfill ??= {});

  /** Return the sum of numbers, rounded once, as Python's math.fsum. */
  const exactSum = (numbers) => {
    const partials = [];
    for (let x of numbers) {
      let kept = 0;
      for (let y of partials) {
        if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
        const high = x + y, low = y - (high - x);
        if (low) partials[kept++] = low;
        x = high;
      }
      partials.splice(kept, Infinity, x);
    }
    return partials.reduceRight((sum, part) => sum + part, 0);
  };

  /** Round to the nearest integer, and halves to the even one, as Python's round. */
  const round = (x) => {
    const below = Math.floor(x), rest = x - below;
    return rest > 0.5 || (rest === 0.5 && below % 2 !== 0) ? below + 1 : below;
  };

  const entry = (list, kind, name) => {
    const found = list.findIndex((one) => one.name === name);
    if (found < 0) throw new Error(`no ${kind} is named ${name}`);
    return found;
  };

  const setRtt = (network, given, index) => {
    const flow = network.flows[index], wanted = given.rtt_s[index];
    const own = exactSum([...flow.forward, ...flow.reverse].map((link) => network.links[link].delay_s));
    if (wanted !== null && wanted < own * (1 - 1e-12)) {
      const ms = (seconds) => `${Number((1e3 * seconds).toPrecision(6))} ms`;
      throw new Error(`flow ${flow.name}: an RTT of ${ms(wanted)} is below that of its path, ${ms(own)}`);
    }
    flow.pad_s = wanted === null ? 0 : Math.max(0, (wanted - own) / 2);
    flow.base_rtt_s = wanted ?? own;
  };

  const NOMINAL_RTT_S = 0.1;

  /** Give each buffer in bandwidth-delay products its size for the largest RTT on its link. */
  const setBuffers = (network, given) => {
    const largest = network.links.map(() => 0);
    for (const flow of network.flows) {
      for (const link of [...flow.forward, ...flow.reverse]) largest[link] = Math.max(largest[link], flow.base_rtt_s);
    }
    network.links.forEach((link, index) => {
      const { bdp, back } = given.links[index];
      if (bdp === null) return;
      const rtt = Math.max(largest[index], back === null ? 0 : largest[back]) || NOMINAL_RTT_S;
      link.buffer = { unit: "bytes", size: round(Math.max(bdp * (link.rate_bps / 8 * rtt), network.packet_bytes)) };
    });
  };

  /**
   * Return a scenario's network under a law, with changed keys in SI units, such as
   * {"link.l.rate": 1e8, "flow.f.count": 3, "params.maxnet.mu": 0.9}.
   */
  waterfill.changed = (scenario, law, values) => {
    const network = structuredClone(scenario.network), given = structuredClone(scenario.given);
    scenario.laws[law].flows.forEach((own, index) => Object.assign(network.flows[index], own));
    for (const [key, value] of Object.entries(values)) {
      const [kind, name, field] = key.split(".");
      if (kind === "params") {
        (network.params[name] ??= {})[field] = value;
      } else if (kind === "flow") {
        const index = entry(network.flows, kind, name);
        if (field === "rtt") given.rtt_s[index] = value;
        else network.flows[index][field] = value;
      } else {
        const index = entry(network.links, kind, name), { back } = given.links[index];
        const both = back === null || field === "loss" ? [index] : [index, back];
        const column = { rate: "rate_bps", delay: "delay_s", loss: "loss" }[field];
        for (const link of both) network.links[link][column] = value;
      }
    }
    network.flows.forEach((_, index) => setRtt(network, given, index));
    setBuffers(network, given);
    return network;
  };

  // --- max-min shares -------------------------------------------------------------------------

  /** Return the classes of a network's flows, and the index of each single flow's class. */
  const classesOf = (network) => {
    const indexes = new Map(), classes = [], ofFlow = [];
    for (const { forward, weight, count } of network.flows) {
      const key = `${forward} ${weight}`;
      if (!indexes.has(key)) {
        indexes.set(key, classes.length);
        classes.push({ path: forward, weight });
      }
      for (let i = 0; i < count; i++) ofFlow.push(indexes.get(key));
    }
    return { classes, ofFlow };
  };

  /** Return one flow's rate in each class (0 if no flow of it is active), by water-filling. */
  const fill = (capacity, classes, counts) => {
    const rates = classes.map(() => null), room = [...capacity];
    let rising = classes.map((_, c) => c).filter((c) => counts[c] > 0);
    while (rising.length) {
      // The next link that fills: capacity left over weight of the flows that still rise.
      let lowest = Infinity, full = -1;
      for (let link = 0; link < room.length; link++) {
        const on = rising.filter((c) => classes[c].path.includes(link));
        if (!on.length) continue;
        const level = Math.max(0, room[link]) / exactSum(on.map((c) => classes[c].weight * counts[c]));
        if (level < lowest) [lowest, full] = [level, link];
      }
      const stopped = rising.filter((c) => classes[c].path.includes(full));
      for (const c of stopped) {
        rates[c] = lowest * classes[c].weight;
        for (const link of classes[c].path) room[link] -= rates[c] * counts[c];
      }
      rising = rising.filter((c) => !stopped.includes(c));
    }
    return rates.map((rate) => rate ?? 0);
  };

  /**
   * Return the max-min shares of a run: spans {from, to, share} (s, bit/s) of each class, and each
   * flow's class. `targets` has the target utilization of each protocol.
   */
  waterfill.shares = (network, targets, flows, end) => {
    const { classes, ofFlow } = classesOf(network);
    const goals = network.links.map((link, index) => {
      const used = network.flows.filter((flow) => flow.forward.includes(index));
      return link.target ?? Math.min(1, ...used.map((flow) => targets[flow.protocol] ?? 1));
    });
    const lives = flows.map((flow) => [flow.start_s, Math.min(flow.stop_s, flow.completed_s ?? Infinity, end)]);
    const sources = network.traffic.map((source) => [source.start_s, source.stop_s]);
    const inside = [...lives.filter(([start, stop]) => start < stop), ...sources].flat();
    const times = [0, ...new Set(inside.filter((time) => time > 0 && time < end)), end].sort((a, b) => a - b);
    const spans = classes.map(() => []);
    for (let i = 0; i + 1 < times.length; i++) {
      const [from, to] = [times[i], times[i + 1]];
      const active = ([start, stop]) => start <= from && from < stop;
      const counts = classes.map(() => 0);
      lives.forEach((life, flow) => { counts[ofFlow[flow]] += active(life); });
      const capacity = network.links.map((link, index) => goals[index] * link.rate_bps);
      network.traffic.forEach((source, index) => {
        if (active(sources[index])) for (const link of source.path) capacity[link] -= source.rate_bps;
      });
      fill(capacity, classes, counts).forEach((share, c) => {
        const last = spans[c].at(-1);
        const same = last && Math.abs(last.share - share) <= 1e-9 * Math.max(Math.abs(last.share), Math.abs(share));
        if (same) last.to = to;
        else spans[c].push({ from, to, share });
      });
    }
    return { spans, ofFlow };
  };

  Object.assign(waterfill, { round });
})();
