"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // --- colours --------------------------------------------------------------------------------
  // Okabe and Ito's; black becomes white on dark paper, yellow is left out on white.
  const HUES = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
  const DARK_HUES = ["#56B4E9", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#F0E442"];
  const DASHES = ["solid", "dash", "dashdot", "dot"];
  const media = matchMedia("(prefers-color-scheme: dark)");
  const chosen = document.getElementById("theme");
  const remember = (value) => { try { localStorage.setItem("waterfill-theme", value); } catch { /* not kept */ } };
  const remembered = () => { try { return localStorage.getItem("waterfill-theme"); } catch { return null; } };
  const isDark = () => root.dataset.theme === "dark";
  const style = (count) => {
    const hues = [...(isDark() ? DARK_HUES : HUES), isDark() ? "#FFFFFF" : "#000000"];
    const turn = Math.floor(count / hues.length), place = count % hues.length;
    return { color: hues[place], dash: DASHES[(place + turn) % DASHES.length] };
  };
  const faded = (hex, alpha) =>
    `rgba(${parseInt(hex.slice(1, 3), 16)},${parseInt(hex.slice(3, 5), 16)},${parseInt(hex.slice(5, 7), 16)},${alpha})`;
  const applyTheme = (value) => {
    root.dataset.theme = value === "light" || value === "dark" ? value : media.matches ? "dark" : "light";
  };
  chosen.value = ["light", "dark"].includes(remembered()) ? remembered() : "auto";
  applyTheme(chosen.value);
  chosen.addEventListener("change", () => { remember(chosen.value); applyTheme(chosen.value); redraw(); });
  media.addEventListener("change", () => { applyTheme(chosen.value); redraw(); });

  // --- tables ---------------------------------------------------------------------------------
  const keyOf = (cell) => (cell.dataset.sort === undefined ? cell.textContent : Number(cell.dataset.sort.replace("inf", "Infinity")));
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
  const sortBy = (table, column) => {
    const heads = all("thead th", table), head = heads[column];
    const direction = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    for (const other of heads) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, place) => [keyOf(row.cells[column]), place, row]);
    rows.sort((a, b) => sign * compare(a[0], b[0]) || a[1] - b[1]);
    body.append(...rows.map((entry) => entry[2]));
  };
  for (const table of all("table.sortable")) {
    if (table.tBodies[0].rows.length < 2) continue;
    all("thead th", table).forEach((head, column) => {
      const button = make("button", { type: "button" }, head.textContent);
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sortBy(table, column));
    });
  }
  for (const input of all("input[type=search][data-for]")) {
    const table = document.getElementById(input.dataset.for);
    const hits = input.closest(".search").querySelector(".hits");
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      hits.textContent = wanted ? `${shown} of ${table.tBodies[0].rows.length} rows` : "";
    });
  }

  // --- filters of a reproduction --------------------------------------------------------------
  const filters = document.getElementById("filters");
  if (filters) {
    const wanted = { paper: filters.querySelector("[name=paper]"), verdict: filters.querySelector("[name=verdict]"), text: filters.querySelector("[name=text]") };
    const apply = () => {
      const text = wanted.text.value.trim().toLowerCase();
      let shown = 0, total = 0;
      for (const section of all("[data-experiment]")) {
        let kept = 0;
        const title = section.querySelector("h3").textContent.toLowerCase();
        for (const row of all("[data-verdict]", section)) {
          const fits = (!wanted.paper.value || section.dataset.paper === wanted.paper.value) &&
            (!wanted.verdict.value || row.dataset.verdict === wanted.verdict.value || (wanted.verdict.value === "short" && row.dataset.short !== undefined)) &&
            (!text || title.includes(text) || row.textContent.toLowerCase().includes(text));
          row.hidden = !fits;
          kept += fits ? 1 : 0;
          total += 1;
        }
        section.hidden = kept === 0;
        shown += kept;
      }
      for (const paper of all("[data-papers-section]")) paper.hidden = all("[data-experiment]", paper).every((one) => one.hidden);
      const any = wanted.paper.value || wanted.verdict.value || text;
      for (const group of all(".beside")) {
        const rows = all("[data-verdict]", group);
        group.hidden = rows.length ? rows.every((row) => row.hidden) : Boolean(any);
      }
      filters.querySelector("[role=status]").textContent = `${shown} of ${total} claims shown`;
    };
    for (const control of Object.values(wanted)) control.addEventListener("input", apply);
    filters.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }

  // --- tabs -----------------------------------------------------------------------------------
  for (const list of all("[role=tablist]")) {
    const tabs = all("[role=tab]", list);
    const select = (tab) => {
      for (const other of tabs) {
        const mine = other === tab;
        other.setAttribute("aria-selected", mine);
        other.tabIndex = mine ? 0 : -1;
        document.getElementById(other.getAttribute("aria-controls")).hidden = !mine;
      }
    };
    tabs.forEach((tab, place) => {
      tab.addEventListener("click", () => select(tab));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        const next = step ? tabs[(place + step + tabs.length) % tabs.length] : { Home: tabs[0], End: tabs.at(-1) }[event.key];
        if (!next) return;
        event.preventDefault();
        select(next);
        next.focus();
      });
    });
  }
  for (const choice of all("select[data-panels]")) {
    const show = () => {
      for (const option of choice.options) document.getElementById(option.value).hidden = option.value !== choice.value;
    };
    choice.addEventListener("change", show);
    show();
  }

  // --- charts ---------------------------------------------------------------------------------
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const legends = Number(root.dataset.legend || 12);
  const drawn = new Map();
  let plotly = null;

  const text = (value) => String(value).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const xs = (x) => (Array.isArray(x) ? x : Array.from({ length: x.count }, (_, i) => x.first + i * x.step));
  const reversed = (values) => [...values].reverse();

  const tracesOf = (spec, x, entry) => {
    const traces = [];
    const add = (owner, trace) => traces.push({ owner, type: "scatter", mode: "lines", showlegend: false, visible: !entry.off.has(owner), ...trace });
    const number = "%{y:.4g}";
    (spec.bands || []).forEach((band, place) => {
      const { color } = style(band.colour), owner = `band${place}`;
      const there = x.map((_, i) => i).filter((i) => band.median[i] !== null);
      const at = (values) => there.map((i) => values[i]), time = at(x);
      for (const [low, high, alpha] of [[band.low, band.high, 0.14], [band.tenth, band.ninetieth, 0.3]])
        add(owner, { x: [...time, ...reversed(time)], y: [...at(high), ...reversed(at(low))], fill: "toself", fillcolor: faded(color, alpha), line: { width: 0 }, hoverinfo: "skip" });
      const words = there.map((i) =>
        `median ${band.median[i]}, 80 %: ${band.tenth[i]} to ${band.ninetieth[i]}<br>lowest ${text(band.names[band.min_of[i]])} ${band.low[i]}<br>highest ${text(band.names[band.max_of[i]])} ${band.high[i]}`);
      add(owner, { x: time, y: at(band.median), line: { color, width: 1.8 }, name: text(band.name), text: words, hovertemplate: `%{text}<extra>${text(band.name)}</extra>` });
    });
    spec.lines.forEach((line, place) => {
      const { color, dash } = style(line.colour), owner = ownerOf(spec, line, place);
      const time = line.x || x, name = text(line.name);
      const hover = { name, hovertemplate: `${number}<extra>${name}</extra>` };
      if (line.low && line.kind !== "points") {
        const there = line.y.map((_, i) => i).filter((i) => line.y[i] !== null), at = (values) => there.map((i) => values[i]);
        add(owner, { x: [...at(time), ...reversed(at(time))], y: [...at(line.high), ...reversed(at(line.low))], fill: "toself", fillcolor: faded(color, 0.18), line: { width: 0 }, hoverinfo: "skip" });
      }
      if (line.kind === "share") add(owner, { ...hover, x: time, y: line.y, line: { color: isDark() ? "#8a8f95" : "#b4b4b4", width: 4 } });
      else if (line.kind === "step") add(owner, { ...hover, x: time, y: line.y, line: { color, dash, width: 1.6, shape: "hv" }, hovertemplate: `%{y:.3f} at %{x:.4g}<extra>${name}</extra>` });
      else if (line.kind === "points") add(owner, { ...hover, x: time, y: line.y, mode: "markers", marker: { color, size: 8, symbol: place % 8 }, ...(line.low ? { error_y: { array: line.high.map((top, i) => top - line.y[i]), color, thickness: 1.5, width: 5 } } : {}) });
      else if (line.kind === "marked") add(owner, { ...hover, x: time, y: line.y, mode: "lines+markers", line: { color, dash, width: 1.6 }, marker: { size: 6, symbol: place % 8 } });
      else if (line.kind === "failed") add(owner, { x: time, y: line.y, mode: "markers", hoverinfo: "skip", marker: { color, size: 13, symbol: "x-thin", line: { color, width: 2.5 } } });
      else if (line.kind === "thin") add(owner, { ...hover, x: time, y: line.y, line: { color, width: 1, dash: "dot" } });
      else add(owner, { ...hover, x: time, y: line.y, line: { color, dash, width: 1.6 } });
    });
    entry.picked.forEach((name, place) => {
      const { color, dash } = style(place + 1);
      add(`pick:${name}`, { x, y: spec.picks[name], line: { color, dash, width: 1.8 }, name: text(name), hovertemplate: `${number}<extra>${text(name)}</extra>` });
    });
    if (spec.heat) {
      const { x: hx, y: hy, z, low, high } = spec.heat;
      traces.push({ owner: "heat", type: "heatmap", x: hx, y: hy, z, zmin: low, zmax: high, colorscale: "Cividis", colorbar: { title: { text: text(spec.heat.name), side: "right" }, thickness: 12 },
        hovertemplate: `${text(spec.x_label)} %{x}<br>${text(spec.y_label)} %{y}<br>%{z:.4g}<extra></extra>` });
    }
    return traces;
  };

  const layoutOf = (spec) => {
    const css = getComputedStyle(root), colour = (name) => css.getPropertyValue(name).trim();
    const axis = { gridcolor: colour("--line"), linecolor: colour("--soft"), zerolinecolor: colour("--line"), tickcolor: colour("--soft"), automargin: true };
    const titled = (label) => ({ text: text(label), font: { size: 12 }, standoff: 6 });
    const x = { ...axis, title: titled(spec.x_label) }, y = { ...axis, title: titled(spec.y_label) };
    // With a format, each tick has its whole value: without, plotly writes 2 and 5 for 20 and 50.
    const log = { type: "log", tickformat: "~g" };
    if (spec.log_x) Object.assign(x, log);
    if (spec.log_y) Object.assign(y, log);
    if (spec.heat) x.type = y.type = "category";
    if (spec.ticks) Object.assign(x, { tickvals: spec.ticks.map((_, i) => i), ticktext: spec.ticks.map(text) });
    if (spec.from_zero && !spec.heat) y.rangemode = "tozero";
    if (spec.y_max) y.range = [0, spec.y_max];
    return {
      xaxis: x, yaxis: y, paper_bgcolor: colour("--bg"), plot_bgcolor: colour("--bg"), margin: { l: 8, r: 10, t: 8, b: 8 },
      font: { family: "system-ui, 'Liberation Sans', Arial, sans-serif", size: 12, color: colour("--fg") },
      hovermode: spec.heat ? "closest" : spec.lines.length + (spec.bands || []).length > 9 ? "closest" : "x unified",
      hoverlabel: { bgcolor: colour("--panel"), font: { color: colour("--fg") }, namelength: -1 }, showlegend: false, dragmode: "zoom",
    };
  };

  const swatch = (item) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("width", 26); svg.setAttribute("height", 10); svg.setAttribute("aria-hidden", "true");
    const line = document.createElementNS(svg.namespaceURI, "line");
    const dashes = { solid: "", dash: "7 4", dashdot: "7 3 2 3", dot: "2 3" };
    for (const [name, value] of Object.entries({ x1: 0, x2: 26, y1: 5, y2: 5, stroke: item.color, "stroke-width": item.width || 2.4, "stroke-dasharray": dashes[item.dash] || "" })) line.setAttribute(name, value);
    if (item.cross) line.setAttribute("transform", "rotate(45 13 5) translate(6.5 2.5) scale(.5)");
    svg.append(line);
    if (item.cross) {
      const other = line.cloneNode();
      other.setAttribute("transform", "rotate(-45 13 5) translate(6.5 2.5) scale(.5)");
      svg.append(other);
    }
    return svg;
  };

  // Several shares look alike: one entry of the legend shows or hides them all.
  const ownerOf = (spec, line, place) =>
    line.kind === "share" && spec.lines.filter((one) => one.kind === "share").length > 1 ? "shares" : `line${place}`;

  const legendOf = (entry) => {
    const { spec, figure } = entry, holder = figure.querySelector(".legend");
    const items = [];
    spec.lines.forEach((line, place) => {
      const owner = ownerOf(spec, line, place);
      if (items.some((item) => item.owner === owner)) return;
      const own = line.kind === "failed" ? { ...style(line.colour), cross: true } : line.kind === "share" ? { color: isDark() ? "#8a8f95" : "#b4b4b4", width: 5 } : line.kind === "thin" ? { ...style(line.colour), dash: "dot", width: 1.2 } : style(line.colour);
      items.push({ owner, name: owner === "shares" ? "max-min shares" : line.name, ...own });
    });
    (spec.bands || []).forEach((band, place) => items.push({ owner: `band${place}`, name: band.name, color: style(band.colour).color, width: 8 }));
    entry.picked.forEach((name, place) => items.push({ owner: `pick:${name}`, name, ...style(place + 1) }));
    const list = make("ul", { "aria-label": "Series" });
    const shown = entry.expanded || items.length <= legends ? items : items.slice(0, legends - 1);
    for (const item of shown) {
      const button = make("button", { type: "button", "aria-pressed": String(!entry.off.has(item.owner)) }, swatch(item), item.name);
      button.addEventListener("click", () => {
        entry.off.has(item.owner) ? entry.off.delete(item.owner) : entry.off.add(item.owner);
        button.setAttribute("aria-pressed", String(!entry.off.has(item.owner)));
        draw(entry);
      });
      list.append(make("li", {}, button));
    }
    if (shown.length < items.length) {
      const more = make("button", { type: "button", class: "more" }, `and ${items.length - shown.length} others`);
      more.addEventListener("click", () => { entry.expanded = true; legendOf(entry); holder.querySelectorAll("button")[legends - 1].focus(); });
      list.append(make("li", {}, more));
    }
    const parts = [];
    if (items.length > 1 || spec.bands) parts.push(list);
    if (spec.picks && !entry.pick) {
      const id = `names-${figure.dataset.chart}`, names = Object.keys(spec.picks);
      const input = make("input", { list: id, autocomplete: "off", size: 16 });
      const options = make("datalist", { id }, ...names.map((value) => make("option", { value })));
      input.addEventListener("change", () => {
        if (!names.includes(input.value)) return;
        entry.picked = entry.picked.filter((name) => name !== input.value).concat(input.value).slice(-6);
        input.value = "";
        draw(entry);
        legendOf(entry);
      });
      entry.pick = make("p", { class: "pick" }, make("label", {}, "Add a flow by name ", input), options);
    }
    holder.replaceChildren(...parts, ...(entry.pick ? [entry.pick] : []));
  };

  const draw = (entry) => {
    const traces = tracesOf(entry.spec, entry.x, entry);
    return plotly.react(entry.plot, traces, layoutOf(entry.spec), { displayModeBar: false, responsive: true });
  };
  const start = (figure) => {
    if (drawn.has(figure)) return;
    const spec = specs[figure.dataset.chart];
    const entry = { figure, spec, plot: figure.querySelector(".plot"), x: xs(spec.x), off: new Set(), picked: [], expanded: false, pick: null };
    drawn.set(figure, entry);
    draw(entry);
    legendOf(entry);
  };
  // Charts are drawn when they come near the window, one at a time, all of them before printing.
  const waiting = new Set();
  let busy = false;
  const drawNext = () => {
    const [figure] = waiting;
    busy = figure !== undefined;
    if (!busy) { root.dataset.ready = "yes"; return; }
    waiting.delete(figure);
    start(figure);
    setTimeout(drawNext, 0);
  };
  const near = new IntersectionObserver((changes) => {
    for (const change of changes) if (change.isIntersecting && !drawn.has(change.target)) waiting.add(change.target);
    if (!busy) drawNext();
  }, { rootMargin: "300px" });
  const drawAll = () => {
    for (const figure of all("[data-chart]")) if (figure.offsetParent !== null) start(figure);
  };
  function redraw() {
    for (const entry of drawn.values()) { draw(entry); legendOf(entry); }
  }

  const inflate = async () => {
    const packed = document.getElementById("plotly").textContent.trim();
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    script.remove();
    return window.Plotly;
  };
  // Charts keep the width that they are drawn with, so the page takes that of a sheet first.
  addEventListener("beforeprint", () => { root.dataset.print = "yes"; applyTheme("light"); if (plotly) drawAll(); redraw(); });
  addEventListener("afterprint", () => { delete root.dataset.print; applyTheme(chosen.value); redraw(); });
  if (Object.keys(specs).length === 0) root.dataset.ready = "yes";
  else inflate().then((found) => { plotly = found; for (const figure of all("[data-chart]")) near.observe(figure); }).catch((error) => {
    root.dataset.ready = "no";
    for (const plot of all(".plot")) plot.replaceWith(make("p", { class: "notice" }, "This browser cannot draw the chart; its numbers are below."));
    throw error;
  });
})();
