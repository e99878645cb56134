// The playground: a scenario with a slider for each link and flow, under up to three laws.
"use strict";
(() => {
  const waterfill = (globalThis.waterfill ??= {});
  const MAX_LAWS = 3;

  /**
   * Return a scenario as TOML with another law and changed keys, {key: text}. The text has each key of
   * a link or flow on a line of its own, as Python writes it.
   */
  waterfill.toml = (text, law, changes) => {
    const quoted = (value) => (/^[\d.]+$/.test(value) ? value : `"${value}"`);
    const blocks = text.split(/^(?=\[\[?\w)/m);
    blocks[0] = blocks[0].replace(/^protocol = .*$/m, `protocol = "${law}"`);
    for (const [key, value] of Object.entries(changes)) {
      const [kind, name, field] = key.split(".");
      const place = blocks.findIndex((block) => block.startsWith(`[[${kind}]]`) && block.includes(`\nname = "${name}"\n`));
      blocks[place] = blocks[place].replace(new RegExp(`^${field} = .*$`, "m"), `${field} = ${quoted(value)}`);
    }
    return blocks.join("");
  };

  const CSV_COLUMNS = ["rate_bps", "window_bytes", "rtt_s"];

  /** Return the samples of the flows of several runs, {law: run}, as CSV. */
  waterfill.csv = (runs) => {
    const lines = [["law", "time_s", "flow", ...CSV_COLUMNS].join(",")];
    for (const [law, { summary, tables }] of Object.entries(runs)) {
      const { time_s, flow, ...columns } = tables.flows;
      time_s.forEach((time, row) => {
        const numbers = CSV_COLUMNS.map((name) => columns[name][row]).map((x) => (Number.isFinite(x) ? x : ""));
        lines.push([law, time, summary.flows[flow[row]].name, ...numbers].join(","));
      });
    }
    return `${lines.join("\n")}\n`;
  };

  /** Return the state of a link's fragment, or that of the first scenario where the fragment is wrong. */
  waterfill.stateOf = (documents, fragment) => {
    const given = new URLSearchParams(fragment.replace(/^#/, ""));
    const asked = given.get("scenario"), scenario = asked in documents ? asked : Object.keys(documents)[0];
    const { laws, sliders } = documents[scenario];
    const chosen = [...new Set((given.get("protocols") ?? "").split(","))].filter((law) => law in laws).slice(0, MAX_LAWS);
    const places = sliders.map(({ start }) => start);
    for (const pair of given.getAll("set")) {
      const [key, value] = pair.split("="), index = sliders.findIndex((slider) => slider.key === key);
      const place = index < 0 ? -1 : sliders[index].steps.findIndex(([text]) => text === value);
      if (place >= 0) places[index] = place;
    }
    return { scenario, laws: chosen.length ? chosen : ["maxnet", "xcp", "cubic"], places };
  };

  /** Return the fragment of a link that restores a state. */
  waterfill.fragmentOf = (documents, { scenario, laws, places }) => {
    const pairs = [["scenario", scenario], ["protocols", laws.join(",")]];
    for (const [key, text] of Object.entries(changesOf(documents[scenario], places))) pairs.push(["set", `${key}=${text}`]);
    return `#${new URLSearchParams(pairs)}`;
  };

  const moved = ({ sliders }, places) => sliders.flatMap(({ key, steps, start }, i) => (places[i] === start ? [] : [[key, steps[places[i]]]]));
  const changesOf = (shipped, places) => Object.fromEntries(moved(shipped, places).map(([key, [text]]) => [key, text]));
  const valuesOf = (shipped, places) => Object.fromEntries(moved(shipped, places).map(([key, [, number]]) => [key, number]));

  /** Return the row of a run in the table of results. */
  const rowOf = (law, { summary }) => {
    const rates = summary.flows.map(({ rate_bps }) => rate_bps).filter((rate) => rate !== null).map((rate) => rate / 1e6);
    const busiest = summary.links.reduce((a, b) => ((b.utilization ?? 0) > (a.utilization ?? 0) ? b : a));
    const shown = (x) => (x === undefined || !Number.isFinite(x) ? "–" : waterfill.general(x, 3));
    const total = rates.reduce((a, b) => a + b, 0), drops = summary.links.reduce((sum, link) => sum + link.drops, 0);
    return [law, shown(total), shown(Math.min(...rates)), shown(Math.max(...rates)), `${shown(100 * busiest.utilization)} (${busiest.name})`,
      shown(busiest.queue_packets.mean), String(drops)];
  };

  const HEADS = ["law", "all flows (Mbit/s)", "slowest", "fastest", "busiest link (%)", "its mean queue (packets)", "dropped"];

  waterfill.table = (runs, [from, to]) => {
    const { make } = waterfill, caption = `Means from ${waterfill.general(from, 3)} to ${waterfill.general(to, 3)} s`;
    const head = make("tr", {}, ...HEADS.map((text) => make("th", { scope: "col" }, text)));
    const rows = Object.entries(runs).map(([law, run]) => make("tr", {}, ...rowOf(law, run).map((text) => make("td", {}, text))));
    const table = make("table", { class: "wf-table" }, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...rows));
    return make("div", { class: "wf-scroll", tabindex: 0, role: "region", "aria-label": caption }, table);
  };

  class Playground {
    constructor(root) {
      this.documents = JSON.parse(root.querySelector("script[type='application/json']").textContent);
      [this.form, this.note, this.results] = ["controls", "note", "results"].map((name) => root.querySelector(`.wf-${name}`));
      this.engine = new waterfill.Engine();
      this.read();
      addEventListener("hashchange", () => { if (location.hash !== this.written) this.read(); });
    }

    get shipped() {
      return this.documents[this.state.scenario];
    }

    /** Take the state of the page's address, and show it. */
    read() {
      this.state = waterfill.stateOf(this.documents, location.hash);
      this.control();
      this.update();
    }

    change(changes) {
      Object.assign(this.state, changes);
      this.control();
      this.update();
    }

    control() {
      const { make, choice } = waterfill, { scenario, laws } = this.state, known = Object.keys(this.shipped.laws);
      const chooser = choice("Scenario", Object.keys(this.documents), scenario, (name) => this.change({
        scenario: name, places: this.documents[name].sliders.map(({ start }) => start),
      }));
      const selects = [...laws, ...(laws.length < MAX_LAWS ? [""] : [])].map((law, i) => {
        const words = ["none", ...known.filter((one) => one === law || !laws.includes(one))];
        return choice(`Law ${i + 1}`, words, law || "none", (word) => {
          const found = [...laws.slice(0, i), word, ...laws.slice(i + 1)].filter((one) => one !== "none");
          this.change({ laws: found.length ? found : laws });
        });
      });
      const buttons = [
        ["Reset sliders", () => this.change({ places: this.shipped.sliders.map(({ start }) => start) })],
        ["Copy link", () => this.copy()],
        ["Download TOML", () => this.save("toml", waterfill.toml(this.shipped.toml, this.state.laws[0], changesOf(this.shipped, this.state.places)))],
        ["Download CSV", () => this.save("csv", waterfill.csv(this.runs ?? {}))],
      ].map(([text, act]) => {
        const button = make("button", { type: "button" }, text);
        button.addEventListener("click", act);
        return button;
      });
      const row = (...parts) => make("div", { class: "wf-controls" }, ...parts);
      this.form.replaceChildren(row(chooser, ...selects), ...this.groups(), row(...buttons));
    }

    /** Return the sliders in a group for each link and each flow. */
    groups() {
      const { make, slider } = waterfill, groups = new Map();
      this.shipped.sliders.forEach((one, i) => {
        const name = one.key.split(".").slice(0, 2).join(" ");
        const { element, set } = slider(one, (place) => { this.state.places[i] = place; this.update(); });
        set(this.state.places[i]);
        groups.set(name, [...(groups.get(name) ?? []), element]);
      });
      return [...groups].map(([name, parts]) => make("fieldset", { class: "wf-row" }, make("legend", {}, name), ...parts));
    }

    async copy() {
      try {
        await navigator.clipboard.writeText(location.href);
        this.note.textContent = "The link to this page with its state is copied.";
      } catch {
        this.note.textContent = "The browser refused to copy: the page's address is the link.";
      }
    }

    save(kind, text) {
      const link = waterfill.make("a", { download: `${this.state.scenario}.${kind}`, href: URL.createObjectURL(new Blob([text])) });
      link.click();
      URL.revokeObjectURL(link.href);
    }

    async update() {
      this.written = waterfill.fragmentOf(this.documents, this.state);
      history.replaceState(null, "", this.written);
      this.wanted = true;
      if (this.busy) return;
      this.busy = true;
      while (this.wanted) {
        this.wanted = false;
        await this.run();
      }
      this.busy = false;
    }

    async run() {
      const { scenario, laws, places } = structuredClone(this.state), shipped = this.documents[scenario];
      try {
        const runs = {}, charts = {};
        let took = 0, network;
        for (const law of laws) {
          network = waterfill.changed(shipped, law, valuesOf(shipped, places));
          const { run, took_ms } = await this.engine.run({ network, backend: "sim" });
          if (this.wanted) return;
          [runs[law], charts[law], took] = [run, waterfill.chartsOf(shipped, network, run), took + took_ms];
        }
        this.runs = runs;
        this.show(laws, charts, runs, network.measure_s);
        this.note.textContent = `${network.duration_s} s under ${laws.join(", ")} in ${took.toFixed(0)} ms, in this page.`;
        this.note.classList.remove("wf-error");
      } catch (problem) {
        this.note.textContent = `${problem.message[0].toUpperCase()}${problem.message.slice(1)}.`;
        this.note.classList.add("wf-error");
      }
    }

    show(laws, charts, runs, window) {
      const { make } = waterfill, grid = make("div", { class: "wf-laws", style: `--laws: ${laws.length}` });
      const alike = [0, 1].map((place) => waterfill.onCommonAxes(laws.map((law) => charts[law][place])));
      laws.forEach((law, i) => {
        const column = make("div", {}, make("h3", {}, law));
        const drawn = [...alike.map((row) => row[i]), ...charts[law].slice(2)].map(waterfill.draw);
        column.insertAdjacentHTML("beforeend", drawn.join(""));
        grid.append(column);
      });
      this.results.replaceChildren(waterfill.table(runs, window), grid);
    }
  }

  if (typeof document === "undefined") return;
  const root = document.querySelector(".wf-playground");
  if (root) waterfill.playground = new Playground(root);
})();
