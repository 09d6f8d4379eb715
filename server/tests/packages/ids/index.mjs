// Both packages draw random bytes ahead with the first id: here while the module is imported.
import { nanoid } from "nanoid";
import { v1, v4, v7 } from "uuid";

const early = [nanoid(), v1(), v4(), v7()];

export const handler = async () => ({ early: early.length, drawn: [nanoid(), v1(), v4(), v7()] });
