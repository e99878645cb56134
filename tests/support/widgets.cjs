// Does for each case on standard input what a widget does when a slider moves, and prints the
// network, the charts and the digest: node widgets.cjs MODULE.wasm < CASES.json
"use strict";
const { readFileSync } = require("node:fs");
const { join } = require("node:path");

const scripts = join(__dirname, "../../docs/assets/widget");
for (const name of ["network", "charts", "draw", "widget", "playground"]) require(join(scripts, `${name}.js`));
const compiled = process.argv[2] && new WebAssembly.Module(readFileSync(process.argv[2]));

// A fresh instance for each: memory of WebAssembly never shrinks.
const ran = (request) =>
  waterfill.decoded(waterfill.finish(new WebAssembly.Instance(compiled).exports, JSON.stringify(request)));

const { documents, cases } = JSON.parse(readFileSync(0));
console.log(JSON.stringify(cases.map(({ widget, law, values, run, texts, fragment }) => {
  try {
    const shipped = documents[widget];
    if (texts) return { toml: waterfill.toml(shipped.toml, law, texts), network: waterfill.changed(shipped, law, values) };
    if (fragment !== undefined) {
      const state = waterfill.stateOf(documents, fragment);
      return { state, fragment: waterfill.fragmentOf(documents, state) };
    }
    const network = waterfill.changed(shipped, law, values);
    if (!run) return { network };
    const finished = ran({ network, backend: "sim" });
    return { network, digest: finished.digest, csv: waterfill.csv({ [law]: finished }), charts: waterfill.chartsOf(shipped, network, finished).map(waterfill.draw) };
  } catch (problem) {
    return { problem: problem.message };
  }
})));
