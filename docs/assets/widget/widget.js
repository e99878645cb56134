// Widgets: sliders over a network, which the simulator in WebAssembly runs again when one moves.
"use strict";
(() => {
  const waterfill = (globalThis.waterfill ??= {});

  // --- the engine, in a worker ----------------------------------------------------------------

  /** Run a request, as text, in an instance of the module; return the output, or throw its sentence. */
  const finish = (core, request) => {
    const bytes = new TextEncoder().encode(request);
    // Addresses above 2 GiB arrive as negative numbers. The memory may grow, which replaces its buffer.
    const input = core.waterfill_input(bytes.length) >>> 0;
    new Uint8Array(core.memory.buffer, input, bytes.length).set(bytes);
    const succeeded = core.waterfill_run();
    const [start, length] = [core.waterfill_output() >>> 0, core.waterfill_output_len() >>> 0];
    const output = new Uint8Array(core.memory.buffer, start, length).slice();
    if (!succeeded) throw new Error(new TextDecoder().decode(output));
    return output;
  };

  /** Runs in the worker: unpacks the module once, and runs each request in a fresh instance. */
  const work = () => {
    let compiled;
    const unpacked = async (text) => {
      const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      return WebAssembly.compile(await new Response(stream).arrayBuffer());
    };
    onmessage = async ({ data: { engine, request } }) => {
      try {
        compiled ??= await unpacked(engine);
        const started = performance.now();
        // Memory of WebAssembly never shrinks.
        const core = (await WebAssembly.instantiate(compiled)).exports;
        const output = finish(core, request);
        postMessage({ output, took_ms: performance.now() - started }, [output.buffer]);
      } catch (problem) {
        postMessage({ problem: String(problem.message ?? problem) });
      }
    };
  };

  /** Load the engine's script once; it is a script so that it loads from a disk, too. */
  const loaded = () => (loaded.promise ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL("engine.js", waterfill.folder);
    script.onload = () => resolve(waterfill.engine);
    script.onerror = () => reject(new Error("the simulator's file engine.js cannot be loaded"));
    document.head.append(script);
  }));

  /** Runs requests one after the other, each for at most `limit_ms`, so that no page hangs. */
  class Engine {
    limit_ms = 10_000;
    #last = Promise.resolve();

    /** Return {run, took_ms} of a request; reject with a sentence if it is refused or takes too long. */
    run(request) {
      const next = this.#last.catch(() => {}).then(() => this.#run(request));
      this.#last = next;
      return next;
    }

    async #run(request) {
      const engine = await loaded();
      this.worker ??= new Worker(URL.createObjectURL(new Blob([`const finish = ${finish}; (${work})()`], { type: "text/javascript" })));
      const worker = this.worker;
      return new Promise((resolve, reject) => {
        const end = () => {
          worker.terminate();
          this.worker = null;
          reject(new Error(`the run was stopped after ${this.limit_ms / 1e3} s: choose lower rates or fewer flows`));
        };
        const timer = setTimeout(end, this.limit_ms);
        worker.onmessage = ({ data: { output, problem, took_ms } }) => {
          clearTimeout(timer);
          if (problem) reject(new Error(problem));
          else resolve({ run: waterfill.decoded(output), took_ms });
        };
        worker.postMessage({ engine, request: JSON.stringify(request) });
      });
    }
  }

  // --- a widget -------------------------------------------------------------------------------

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  let count = 0;

  /** Return a slider with its label and value, which calls `moved` with the place of a new step. */
  const slider = ({ label, steps, start }, moved) => {
    const value = make("output", {}, steps[start][2]);
    // A label without `for` would be that of the value.
    const id = `wf-slider-${(count += 1)}`;
    const input = make("input", { id, type: "range", min: 0, max: steps.length - 1, step: 1, value: start });
    const show = () => {
      value.textContent = steps[input.value][2];
      input.setAttribute("aria-valuetext", steps[input.value][2]);
    };
    show();
    input.addEventListener("input", () => { show(); moved(Number(input.value)); });
    const set = (place) => { input.value = place; show(); };
    return { element: make("label", { class: "wf-slider", for: id }, make("span", {}, label, ": ", value), input), set };
  };

  const choice = (label, words, now, chosen) => {
    const select = make("select", {}, ...words.map((word) => make("option", word === now ? { selected: "" } : {}, word)));
    select.addEventListener("change", () => chosen(select.value));
    return make("label", { class: "wf-choice" }, make("span", {}, `${label}: `), select);
  };

  /** Return the charts that a widget shows of a run. */
  waterfill.chartsOf = (shipped, network, run) => {
    const found = new waterfill.RunCharts(run, network, shipped);
    const of = { rates: () => [found.rates()], queues: () => [found.queues()], signal: () => found.signals().slice(0, 1) };
    return shipped.charts.flatMap((name) => of[name]());
  };

  class Widget {
    constructor(root, engine) {
      this.shipped = JSON.parse(root.querySelector("script[type='application/json']").textContent);
      this.engine = engine;
      this.note = root.querySelector(".wf-note");
      this.drawing = root.querySelector(".wf-grid2");
      this.law = Object.keys(this.shipped.laws)[0];
      this.places = this.shipped.sliders.map(({ start }) => start);
      this._control(root.querySelector(".wf-controls"));
      this.note.textContent = "Move a slider: the packet simulator runs in this page.";
      const observer = new IntersectionObserver((entries) => {
        if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
        observer.disconnect();
        this.update();
      });
      observer.observe(root);
    }

    _control(form) {
      const laws = Object.keys(this.shipped.laws);
      if (laws.length > 1) form.append(choice("Law", laws, this.law, (law) => { this.law = law; this.update(); }));
      const sliders = this.shipped.sliders.map((one, i) => slider(one, (place) => {
        this.places[i] = place;
        this.update();
      }));
      const reset = make("button", { type: "button" }, "Reset sliders");
      reset.addEventListener("click", () => {
        this.shipped.sliders.forEach(({ start }, i) => { this.places[i] = start; sliders[i].set(start); });
        this.update();
      });
      form.append(...sliders.map(({ element }) => element), reset);
    }

    /** Return the values of the sliders that have moved, in SI units. */
    values() {
      const moved = this.shipped.sliders.map(({ key, steps, start }, i) => [key, steps[this.places[i]][1], this.places[i] !== start]);
      return Object.fromEntries(moved.filter(([, , differs]) => differs));
    }

    /** Run the network again, unless a run is under way: then once more when it has ended. */
    async update() {
      this.wanted = true;
      if (this.busy) return;
      this.busy = true;
      while (this.wanted) {
        this.wanted = false;
        await this._run();
      }
      this.busy = false;
    }

    async _run() {
      try {
        const network = waterfill.changed(this.shipped, this.law, this.values());
        const { run, took_ms } = await this.engine.run({ network, backend: "sim" });
        this.drawing.innerHTML = waterfill.chartsOf(this.shipped, network, run).map(waterfill.draw).join("");
        this.note.textContent = `Packet simulator in this page: ${network.duration_s} s of ${this.law} in ${took_ms.toFixed(0)} ms.`;
        this.note.classList.remove("wf-error");
      } catch (problem) {
        this.note.textContent = `${problem.message[0].toUpperCase()}${problem.message.slice(1)}.`;
        this.note.classList.add("wf-error");
      }
    }
  }

  Object.assign(waterfill, { Engine, Widget, make, slider, choice, finish });

  if (typeof document === "undefined") return;
  waterfill.folder = document.currentScript.src;
  const engine = new Engine();
  waterfill.widgets = [...document.querySelectorAll(".wf-widget")].map((root) => new Widget(root, engine));
})();
