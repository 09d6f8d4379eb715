// A generator for `Math.random` whose state can be set.
"use strict";

const vm = require("node:vm");

// Run in a realm: replaces its `Math.random`, and returns it with what seeds it. Generator: sfc32 (Chris Doty-Humphrey,
// PractRand), three words and a counter; a result is 53 random bits in [0, 1).
const REPLACE = new vm.Script(
  `(() => {
  "use strict";
  let a = 0;
  let b = 0;
  let c = 0;
  let counter = 0;
  const next = () => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  const { random } = {
    random() {
      return ((next() >>> 5) * 0x4000000 + (next() >>> 6)) / 0x20000000000000;
    },
  };
  Object.defineProperty(Math, "random", { value: random, writable: true, configurable: true });
  const seed = (x, y, z) => {
    a = x;
    b = y;
    c = z;
    counter = 1;
    // The first results still show the seed's pattern.
    for (let round = 0; round < 12; round += 1) {
      next();
    }
  };
  return [random, seed];
})()`,
  { filename: __filename },
);

module.exports = { REPLACE };
