// Express behind serverless-http, as on Lambda.
import { randomUUID } from "node:crypto";
import express from "express";
import serverless from "serverless-http";

const app = express();
app.use(express.json());
app.put("/items/:id", (request, response) => {
  const { id } = request.params;
  response.status(202).json({ id, tags: request.query.tag, ...request.body, drawn: [randomUUID()] });
});

export const handler = serverless(app);
