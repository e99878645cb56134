// Charts of a run as data, with the rules of waterfill.analysis.run_charts for a screen: rates with
// max-min shares, peak queues, and one signal for each law. Tests compare the drawn charts with
// those of Python, so titles, units and averages cannot differ.
"use strict";
(() => {
  const waterfill = (globalThis.waterfill ??= {});
  const COLOURS = 7, MAX_LINES = COLOURS, MAX_SHARES = 8, INTERVALS = 240, MBIT = 1e6;
  const NAMED = { blue: 0, red: 1, green: 2, pink: 3, purple: 3, orange: 4, black: 6 };

  /** Read the module's output: its header, and the columns of each table as arrays by name. */
  waterfill.decoded = (bytes) => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const length = Number(view.getBigUint64(0, true));
    const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
    const numbers = new Float64Array(bytes.slice(8 + length).buffer);
    let place = 0;
    const tables = {};
    for (const { name, rows, columns } of header.tables) {
      tables[name] = {};
      for (const column of columns) {
        tables[name][column.name] = numbers.subarray(place, place + rows);
        place += rows;
      }
    }
    return { digest: header.digest, summary: header.summary, tables };
  };

  // --- values by name and interval ------------------------------------------------------------

  const gridOf = ({ duration_s, sample_s }) => {
    let width = duration_s / INTERVALS;
    if (sample_s > 0 && sample_s < duration_s) width = Math.max(1, waterfill.round(width / sample_s)) * sample_s;
    const count = Math.max(1, Math.ceil(duration_s / width - 1e-9));
    return { width, count, middles: Array.from({ length: count }, (_, i) => (i + 0.5) * width) };
  };

  /** One table of a run, whose rows are sorted once by name and interval. */
  class Binned {
    constructor(table, which, names, grid) {
      Object.assign(this, { table, names, count: grid.count });
      this.cells = Array.from(table[which], (name, row) => {
        const interval = Math.ceil(table.time_s[row] / grid.width - 1e-6) - 1;
        return name * grid.count + Math.min(grid.count - 1, Math.max(0, interval));
      });
    }

    _rows(flat) {
      return this.names.map((_, name) => flat.slice(name * this.count, (name + 1) * this.count));
    }

    means(column, nullIsZero = false) {
      const size = this.names.length * this.count, values = this.table[column];
      const sums = new Float64Array(size), counts = new Float64Array(size);
      this.cells.forEach((cell, row) => {
        const value = values[row];
        if (!nullIsZero && !Number.isFinite(value)) return;
        sums[cell] += Number.isNaN(value) ? 0 : value;
        counts[cell] += 1;
      });
      return this._rows(Array.from(sums, (sum, cell) => (counts[cell] ? sum / counts[cell] : NaN)));
    }

    extremes(column, sign) {
      const found = new Array(this.names.length * this.count).fill(NaN), values = this.table[column];
      this.cells.forEach((cell, row) => {
        const value = values[row];
        if (!Number.isNaN(value) && !(sign * found[cell] >= sign * value)) found[cell] = value;
      });
      return this._rows(found);
    }
  }

  const largest = (rows) => Math.max(0, ...rows.map((row) => row.reduce((a, b) => (b > a ? b : a), -Infinity)));
  const some = (row) => row.some(Number.isFinite);
  const scaled = (row, unit) => row.map((value) => value / unit);

  // --- lines and bands ------------------------------------------------------------------------

  const coloursOf = (names) => {
    const known = names.map((name) => NAMED[name.toLowerCase().split(/[^a-z]/, 1)[0]] ?? null);
    if (known.every((place) => place === null)) return names.map((_, i) => i);
    const all = Array.from({ length: COLOURS }, (_, i) => i);
    const left = all.filter((place) => !known.includes(place)), free = left.length ? left : all;
    const found = [];
    let unnamed = 0;
    for (const named of known) {
      let place = named ?? free[unnamed % free.length];
      unnamed += named === null;
      while (found.includes(place)) place += COLOURS;
      found.push(place);
    }
    return found;
  };

  /** Return a percentile of sorted values, interpolated as numpy does. */
  const percentile = (sorted, share) => {
    const place = share * (sorted.length - 1), below = Math.floor(place), t = place - below;
    const a = sorted[below], b = sorted[Math.min(below + 1, sorted.length - 1)];
    return t >= 0.5 ? b - (b - a) * (1 - t) : a + (b - a) * t;
  };

  const bandsOf = (groups, values) => {
    const found = [];
    [...groups].forEach(([name, rows], colour) => {
      const mine = rows.map((row) => values[row]);
      if (!mine.some(some)) return;
      const sorted = mine[0].map((_, i) => mine.map((row) => row[i]).filter(Number.isFinite).sort((a, b) => a - b));
      const at = (share) => sorted.map((column) => (column.length ? percentile(column, share) : NaN));
      const [low, tenth, median, ninetieth, high] = [0, 0.1, 0.5, 0.9, 1].map(at);
      found.push({ name, count: rows.length, colour, low, tenth, median, ninetieth, high });
    });
    return found;
  };

  /** The charts of one run. `run` is what `decoded` returned, `about` what the widget shipped. */
  class RunCharts {
    constructor(run, network, about) {
      Object.assign(this, { run, network, about, grid: gridOf(network) });
      const { flows, links } = run.summary;
      this.flows = new Binned(run.tables.flows, "flow", flows.map((flow) => flow.name), this.grid);
      this.links = new Binned(run.tables.links, "link", links.map((link) => link.name), this.grid);
      const width = this.grid.width;
      this.span = `${waterfill.general(width, 3)} s`;
    }

    rates() {
      const rates = this.flows.means("rate_bps", true);
      const names = this.run.summary.traffic.map((source) => source.name);
      const traffic = new Binned(this.run.tables.traffic, "traffic", names, this.grid).means("rate_bps");
      const { lines, bands } = this._ofFlows(rates.map((row) => scaled(row, MBIT)), names);
      const used = Math.max(...[...bands, ...lines].map(({ colour }) => colour)) + 1;
      const colours = bands.length
        ? names.map((_, i) => used + i)
        : coloursOf([...this.flows.names, ...names]).slice(this.flows.names.length);
      const sources = names.map((name, i) => ({ name, y: scaled(traffic[i], MBIT), colour: colours[i] }));
      const all = [...this._shares(), ...lines, ...sources.filter((line) => some(line.y))];
      return this._overTime("rate (Mbit/s)", all, bands, `means of ${this.span}`, true);
    }

    queues() {
      const peaks = this.links.extremes("queue_max_bytes", 1), packet = this.network.packet_bytes;
      const heights = peaks.map((row) => largest([row])), highest = Math.max(0, ...heights);
      const worth = heights.map((_, row) => row).filter((row) => heights[row] > 0.05 * highest);
      const kept = [...worth].sort((a, b) => heights[b] - heights[a]).slice(0, MAX_LINES);
      const rows = worth.filter((row) => kept.includes(row));
      const lines = rows.map((row, colour) => ({ name: this.links.names[row], y: scaled(peaks[row], packet), colour }));
      return this._overTime("peak queue (packets)", lines, [], `peaks of each ${this.span}`, true);
    }

    /** Return one chart for each law: the first signal that its routers announce, else its sources. */
    signals() {
      const found = [], seen = new Set();
      for (const [which, binned] of [["links", this.links], ["flows", this.flows]]) {
        for (const column of Object.keys(this.run.tables[which])) {
          const signal = this.about.signals[column];
          if (!signal || seen.has(signal.law)) continue;
          const means = binned.means(column);
          if (!means.some(some)) continue;
          seen.add(signal.law);
          found.push(this._signal(which, column, signal, binned, means));
        }
      }
      return found;
    }

    _signal(which, column, signal, binned, means) {
      const [unit, text] = signal.unit === "bit/s" ? [MBIT, "Mbit/s"] : [1, signal.unit === "1" ? "" : signal.unit];
      const name = `${signal.law} ${signal.name.replaceAll("_", " ")}`;
      const label = text ? `${name} (${text})` : name, method = `means of ${this.span}`;
      if (which === "flows") {
        const { lines, bands } = this._ofFlows(means.map((row) => scaled(row, unit)), []);
        return this._overTime(label, lines, bands, method, false);
      }
      const there = means.map((_, row) => row).filter((row) => some(means[row]));
      const used = (row) => this.run.summary.links[row].utilization ?? 0;
      const rows = there.length <= MAX_LINES ? there : there.sort((a, b) => used(b) - used(a)).slice(0, MAX_LINES);
      const low = binned.extremes(column, -1), high = binned.extremes(column, 1);
      const lines = rows.map((row, colour) => ({
        name: binned.names[row], y: scaled(means[row], unit), colour,
        low: scaled(low[row], unit), high: scaled(high[row], unit),
      }));
      return this._overTime(label, lines, [], method, false);
    }

    _overTime(yLabel, lines, bands, method, fromZero) {
      const x = this.grid.middles;
      return {
        xLabel: "time (s)", yLabel, x, lines, bands, method, fromZero,
        xRange: [0, this.network.duration_s], yRange: [null, null],
      };
    }

    _ofFlows(values, others) {
      const names = this.flows.names;
      if (names.length <= MAX_LINES) {
        const colours = coloursOf([...names, ...others]);
        const lines = names.map((name, row) => ({ name, y: values[row], colour: colours[row] }));
        return { lines: lines.filter((line) => some(line.y)), bands: [] };
      }
      let groups = new Map();
      this.run.summary.flows.forEach(({ group }, row) => groups.set(group, [...(groups.get(group) ?? []), row]));
      if (groups.size > MAX_LINES) groups = new Map([["all flows", names.map((_, row) => row)]]);
      const lines = [], bands = [];
      for (const band of bandsOf(groups, values)) {
        if (band.count === 1) lines.push({ name: band.name, y: band.median, colour: band.colour });
        else bands.push(band);
      }
      return { lines, bands };
    }

    _shares() {
      const { summary } = this.run;
      const { spans, ofFlow } = waterfill.shares(this.network, this.about.targets, summary.flows, this.network.duration_s);
      const there = spans.filter((mine, c) => ofFlow.includes(c) && mine.some(({ share }) => share > 0));
      if (there.length > MAX_SHARES) return [];
      return there.map((mine) => ({
        name: "", role: "share",
        x: mine.flatMap(({ from, to }) => [from, to]),
        y: mine.flatMap(({ share }) => Array(2).fill(share > 0 ? share / MBIT : NaN)),
      }));
    }
  }

  Object.assign(waterfill, { COLOURS, RunCharts });
})();
