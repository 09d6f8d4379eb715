/** A small HTTP API behind the function's URL: a router, JSON in and out, errors as JSON. */

class HttpError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Method, path (`:name` becomes a parameter) and handler. */
const routes = [
  ["GET", "/", () => ({ routes: ["GET /greetings/:name", "POST /sums"] })],
  ["GET", "/greetings/:name", ({ query, name }) => ({ greeting: `${query.word ?? "Hello"}, ${name}!` })],
  [
    "POST",
    "/sums",
    ({ json }) => {
      if (!Array.isArray(json) || !json.every((number) => typeof number === "number")) {
        throw new HttpError(422, "the body must be a list of numbers");
      }
      return { sum: json.reduce((sum, number) => sum + number, 0) };
    },
  ],
].map(([method, path, answer]) => ({
  method,
  pattern: new RegExp(`^${path.replace(/:(\w+)/g, "(?<$1>[^/]+)")}/?$`),
  answer,
}));

export const handler = async (event, context) => {
  const method = event.requestContext?.http?.method ?? "GET";
  const path = event.rawPath ?? "/";
  try {
    const result = find(method, path, event);
    console.log(`${method} ${path}: 200`);
    return response(200, result);
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    console.log(`${method} ${path}: ${error.status} ${error.message}`);
    return response(error.status, { error: error.message });
  }
};

function find(method, path, event) {
  const matching = routes.filter((route) => route.pattern.test(path));
  const route = matching.find((candidate) => candidate.method === method);
  if (route) {
    const parameters = route.pattern.exec(path).groups;
    return route.answer({ query: event.queryStringParameters ?? {}, json: bodyOf(event), ...parameters });
  }
  if (matching.length > 0) {
    throw new HttpError(405, `${path} allows ${matching.map((candidate) => candidate.method).join(", ")}`);
  }
  throw new HttpError(404, `${path} not found`);
}

function bodyOf({ body, isBase64Encoded }) {
  if (!body) return null;
  try {
    return JSON.parse(isBase64Encoded ? Buffer.from(body, "base64").toString() : body);
  } catch (error) {
    throw new HttpError(400, `the body is not JSON: ${error.message}`);
  }
}

const response = (statusCode, value) => ({
  statusCode,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(value),
});
