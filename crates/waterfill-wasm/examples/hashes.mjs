// Does what hashes.rs does, with the module for wasm32: node hashes.mjs MODULE.wasm FILE…
import { readFileSync } from "node:fs";

const [modulePath, ...files] = process.argv.slice(2);
const compiled = new WebAssembly.Module(readFileSync(modulePath));

for (const file of files) {
  // A fresh instance for each: memory of WebAssembly never shrinks.
  const core = new WebAssembly.Instance(compiled).exports;
  const request = readFileSync(file);
  // Addresses above 2 GiB arrive as negative numbers.
  const input = core.waterfill_input(request.length) >>> 0;
  new Uint8Array(core.memory.buffer, input, request.length).set(request);
  const succeeded = core.waterfill_run();
  const [start, length] = [core.waterfill_output() >>> 0, core.waterfill_output_len() >>> 0];
  const bytes = Buffer.from(core.memory.buffer, start, length);
  const header = () => JSON.parse(bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE(0))));
  console.log(`${file}\t${succeeded ? header().digest : `refused: ${bytes}`}`);
}
