// Caches of random values in Node's own crypto module, which siblings would share: UUIDs by 128, integers by 1024.
"use strict";

const UUID_CACHE = 128;
const INTEGER_CACHE = 1024;

/** Uses up whatever the caches hold. */
function useUpCaches(randomUUID, randomInt) {
  for (let left = UUID_CACHE; left > 0; left -= 1) {
    randomUUID();
  }
  for (let left = INTEGER_CACHE; left > 0; left -= 1) {
    randomInt(2);
  }
}

module.exports = { UUID_CACHE, INTEGER_CACHE, useUpCaches };
