// Charts as SVG text, byte for byte as waterfill.studio.chart draws them. Tests compare both.
"use strict";
(() => {
  const waterfill = (globalThis.waterfill ??= {});
  const WIDTH = 520, HEIGHT = 270, LEFT = 58, RIGHT = 122, TOP = 34, BOTTOM = 44;
  const DASHES = ["", "7 4", "2 3", "9 3 2 3"], MAX_NAME = 14, LINE_HEIGHT = 15;

  // --- numbers as Python formats them ---------------------------------------------------------

  /** Return a number with fixed digits. A tie, an odd multiple of 2^-(digits + 1), goes to the even digit, as in Python. */
  const fixed = (x, digits) => {
    const size = 10 ** digits, tie = (Math.abs(x) * 2 ** (digits + 1)) % 2 === 1;
    const text = (tie ? Math.sign(x) * waterfill.round(Math.abs(x) * size) / size : x).toFixed(digits);
    return Number(text) === 0 && (x < 0 || Object.is(x, -0)) && !text.startsWith("-") ? `-${text}` : text;
  };

  /** Return a number with up to so many significant digits, as Python's format "g". */
  waterfill.general = (x, digits = 6) => {
    if (x === 0) return Object.is(x, -0) ? "-0" : "0";
    const [mantissa, power] = x.toExponential(digits - 1).split("e");
    const exponent = Number(power), bare = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
    if (exponent >= -4 && exponent < digits) return bare(fixed(x, Math.max(0, digits - 1 - exponent)));
    return `${bare(mantissa)}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  };

  const escape = (text) =>
    text.replace(/[&<>"']/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" })[c]);

  // --- axes -----------------------------------------------------------------------------------

  const rangeOf = (values, zero) => {
    let low = Infinity, high = -Infinity;
    for (const series of values) {
      for (const value of series) if (Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
    }
    if (low > high) return [0, 1];
    if (zero) [low, high] = [Math.min(low, 0), Math.max(high, 0)];
    const gap = high - low || Math.abs(high) || 1;
    return [low - (zero && low === 0 ? 0 : 0.06 * gap), high + 0.06 * gap];
  };

  /** Return the ranges of a chart's axes, with the ends that are given. */
  waterfill.ranges = (chart) => {
    const xs = chart.lines.map((line) => line.x ?? chart.x);
    const ys = [...chart.lines, ...chart.bands].flatMap(({ y, low, high }) => [y, low, high].filter(Boolean));
    const ends = (given, found) => given.map((end, i) => end ?? found[i]);
    return { x: ends(chart.xRange, rangeOf(xs, false)), y: ends(chart.yRange, rangeOf(ys, chart.fromZero)) };
  };

  /** Return charts of one quantity with a common y range. */
  waterfill.onCommonAxes = (charts) => {
    const ranges = charts.map((chart) => waterfill.ranges(chart).y);
    const common = [Math.min(...ranges.map(([low]) => low)), Math.max(...ranges.map(([, high]) => high))];
    return charts.map((chart) => ({ ...chart, yRange: common }));
  };

  const axesOf = (chart) => {
    const { x, y } = waterfill.ranges(chart), width = WIDTH - LEFT - RIGHT, height = HEIGHT - TOP - BOTTOM;
    const across = (value) => LEFT + ((value - x[0]) / (x[1] - x[0])) * width;
    const down = (value) => TOP + (1 - (value - y[0]) / (y[1] - y[0])) * height;
    return { x, y, width, height, across, down };
  };

  const ticks = (low, high, number = 5) => {
    const span = high - low;
    if (!(span > 0) || !Number.isFinite(span)) return [low];
    const raw = span / number, power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.999);
    const first = Math.ceil(low / step - 1e-9) + 0, last = Math.floor(high / step + 1e-9), found = [];
    for (let index = first; index <= last; index++) found.push(index * step);
    return found;
  };

  const label = (value, step) => {
    const digits = step > 0 ? Math.max(0, -Math.floor(Math.log10(step) + 1e-9)) : 0;
    const text = Math.abs(value) < 1e5 ? fixed(value, Math.min(digits, 6)) : waterfill.general(value);
    return text.replaceAll("-", "−");
  };

  // --- parts of a chart -----------------------------------------------------------------------

  waterfill.title = ({ yLabel, method }) => {
    const [name, unit = ""] = yLabel.split(" ("), about = [unit.replace(/\)$/, ""), method].filter(Boolean).join(", ");
    const shown = name.includes("_") ? name : name[0].toUpperCase() + name.slice(1);
    return about ? `${shown} (${about})` : shown;
  };

  const series = (chart) => [
    ...chart.lines.filter((line) => line.role !== "share"),
    ...chart.bands.map((band) => ({ name: `${band.name} (×${band.count})`, colour: band.colour, y: band.median })),
  ];

  const spoken = (chart) => {
    const ends = series(chart).filter(({ y }) => y.length && Number.isFinite(y.at(-1)));
    const texts = ends.map(({ name, y }) => `${name} ends at ${waterfill.general(y.at(-1), 3)}`);
    return `${waterfill.title(chart)} over ${chart.xLabel}. ${texts.join(", ")}`;
  };

  const grid = (chart, axes) => {
    const right = WIDTH - RIGHT, bottom = HEIGHT - BOTTOM, parts = [];
    const text = (anchor, x, y, words) => `<text class="wf-tick" text-anchor="${anchor}" x="${x}" y="${y}">${words}</text>`;
    const rows = ticks(...axes.y);
    for (const value of rows) {
      const y = axes.down(value), step = rows.length > 1 ? rows[1] - rows[0] : 1;
      parts.push(`<path class="${value === 0 ? "wf-axis" : "wf-grid"}" d="M${LEFT} ${fixed(y, 1)}H${right}"/>`);
      parts.push(text("end", LEFT - 7, fixed(y + 4, 1), label(value, step)));
    }
    const columns = ticks(...axes.x, 6);
    for (const value of columns) {
      const x = fixed(axes.across(value), 1), step = columns.length > 1 ? columns[1] - columns[0] : 1;
      parts.push(`<path class="wf-grid" d="M${x} ${TOP}V${bottom}"/>`);
      parts.push(text("middle", x, bottom + 16, label(value, step)));
    }
    return [...parts, text("middle", fixed((LEFT + right) / 2, 0), HEIGHT - 8, escape(chart.xLabel))];
  };

  const dash = (style) => {
    const turn = Math.floor(style / waterfill.COLOURS), place = style % waterfill.COLOURS;
    const found = DASHES[(place + turn) % DASHES.length];
    return found ? ` stroke-dasharray="${found}"` : "";
  };
  const look = (colour) => `class="wf-line wf-s${colour % waterfill.COLOURS}"${dash(colour)}`;

  // Far outside the axes a renderer's arithmetic would overflow.
  const point = (axes, x, y) =>
    `${fixed(axes.across(x), 1)},${fixed(Math.min(1e4, Math.max(-1e4, axes.down(y))), 1)}`;

  const shade = (x, low, high, colour, axes) => {
    const there = [...low.keys()].filter((i) => Number.isFinite(low[i]));
    const upper = there.map((i) => point(axes, x[i], high[i]));
    const lower = there.reverse().map((i) => point(axes, x[i], low[i]));
    const kind = `class="wf-band wf-f${colour % waterfill.COLOURS}"`;
    return `<polygon ${kind} clip-path="url(#wf-clip)" points="${[...upper, ...lower].join(" ")}"/>`;
  };

  const drawn = (line, x, axes) => {
    const kind = line.role === "share" ? 'class="wf-guide"' : look(line.colour);
    const parts = line.low ? [shade(x, line.low, line.high, line.colour, axes)] : [];
    let points = [];
    const end = () => {
      if (points.length) parts.push(`<polyline ${kind} clip-path="url(#wf-clip)" points="${points.join(" ")}"/>`);
      points = [];
    };
    line.y.forEach((value, i) => {
      if (Number.isFinite(value)) points.push(point(axes, x[i], value));
      else end();
    });
    end();
    return parts;
  };

  const banded = (band, x, axes) => [
    shade(x, band.low, band.high, band.colour, axes),
    shade(x, band.tenth, band.ninetieth, band.colour, axes),
    ...drawn({ y: band.median, colour: band.colour }, x, axes),
  ];

  const apart = (heights) => {
    const places = heights.map((y) => Math.max(TOP + 4, Math.min(HEIGHT - BOTTOM, y)));
    for (let i = 1; i < places.length; i++) places[i] = Math.max(places[i], places[i - 1] + LINE_HEIGHT);
    let limit = HEIGHT - BOTTOM + 2;
    for (let i = places.length - 1; i >= 0; i--) {
      places[i] = Math.min(places[i], limit);
      limit = places[i] - LINE_HEIGHT;
    }
    return places;
  };

  const compareText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  const names = (chart, axes) => {
    const wanted = [];
    for (const { name, colour, y } of series(chart)) {
      const last = y.findLastIndex(Number.isFinite);
      if (name && last >= 0) wanted.push([axes.down(y[last]), name, look(colour)]);
    }
    const shares = chart.lines.filter((line) => line.role === "share");
    if (shares.length) wanted.push([axes.down(shares[0].y.findLast(Number.isFinite)) - 1, "max-min", 'class="wf-guide"']);
    wanted.sort((a, b) => a[0] - b[0] || compareText(a[1], b[1]) || compareText(a[2], b[2]));
    const places = apart(wanted.map(([y]) => y)), x = WIDTH - RIGHT + 6;
    return wanted.flatMap(([, name, swatch], i) => {
      const short = name.length <= MAX_NAME ? name : `${name.slice(0, MAX_NAME - 6)}…${name.slice(-5)}`;
      return [
        `<path ${swatch} d="M${x} ${fixed(places[i], 1)}h14"/>`,
        `<text x="${x + 18}" y="${fixed(places[i] + 4, 1)}">${escape(short)}<title>${escape(name)}</title></text>`,
      ];
    });
  };

  /** Return a chart as an SVG element for a page with the studio's chart.css. */
  waterfill.draw = (chart) => {
    const axes = axesOf(chart);
    const parts = [
      ...grid(chart, axes),
      ...chart.lines.flatMap((line) => drawn(line, line.x ?? chart.x, axes)),
      ...chart.bands.flatMap((band) => banded(band, chart.x, axes)),
      ...names(chart, axes),
    ];
    const clip =
      `<defs><clipPath id="wf-clip"><rect x="${LEFT}" y="${TOP - 2}" width="${axes.width}" ` +
      `height="${axes.height + 4}"/></clipPath></defs>`;
    const head = `<text class="wf-title" x="${LEFT - 50}" y="18">${escape(waterfill.title(chart))}</text>`;
    return (
      `<svg class="wf-chart" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" ` +
      `aria-label="${escape(spoken(chart))}">${clip}${head}${parts.join("")}</svg>`
    );
  };
})();
