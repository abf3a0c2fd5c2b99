// Ways to wait and to compute in Node, by name.
import http from "node:http";

console.log("up");
const wanted = process.argv[2];
if (wanted === "atomics") {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  Atomics.wait(cell, 0, 0);
} else if (wanted === "loop") {
  let done = false;
  while (!done);
} else if (wanted === "interval") {
  setInterval(() => {}, 30000);
} else if (wanted === "server") {
  http.createServer(() => {}).listen(0, "127.0.0.1");
} else if (wanted === "stdin") {
  process.stdin.resume();
}
