// Draws random numbers from every source that Node.js has.
import crypto from "node:crypto";
import { readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import vm from "node:vm";

const context = vm.createContext({});

const draw = async () => {
  const urandom = await open("/dev/urandom");
  const { buffer } = await urandom.read(Buffer.alloc(8), 0, 8);
  await urandom.close();
  return {
    "Math.random": Math.random(),
    "Math.random elsewhere": vm.runInContext("Math.random()", context),
    randomBytes: crypto.randomBytes(8).toString("hex"),
    "randomBytes on a thread": (await promisify(crypto.randomBytes)(8)).toString("hex"),
    randomUUID: crypto.randomUUID(),
    "randomUUID without a cache": crypto.randomUUID({ disableEntropyCache: true }),
    randomInt: crypto.randomInt(2 ** 47),
    getRandomValues: crypto.getRandomValues(new BigUint64Array(1)).toString(),
    "a key": crypto.generateKeySync("hmac", { length: 64 }).export().toString("hex"),
    "/dev/urandom": buffer.toString("hex"),
  };
};

// Every state there is has been used before the image is made, so that it would be in there.
await draw();

export const handler = async (event) => {
  if (event === "mappings") {
    return readFileSync("/proc/self/smaps", "utf8");
  }
  const drawn = [];
  for (let round = 0; round < 3; round++) {
    drawn.push(await draw());
  }
  return drawn;
};
