import { setTimeout as sleep } from "node:timers/promises";

const step = async (number, ms) => {
  console.log(`step ${number} started`);
  await sleep(ms);
  console.log(`step ${number} done`);
  return number;
};

/** The three steps wait at the same time. */
export const handler = async (event, context) => {
  const began = performance.now();
  const steps = await Promise.all([step(1, 30), step(2, 20), step(3, 10)]);
  return {
    steps,
    seconds: Math.round(performance.now() - began) / 1000,
    msLeft: context.getRemainingTimeInMillis(),
  };
};
