// STeLLAR's function: spins, makes a payload, hands it on along a chain, inline or through storage, and says when it ran.
const store = process.env.STORE ? new URL(`http://${process.env.STORE}`) : undefined;
// By number of the function in its chain and by method; none with a token.
const signed = process.env.STORE_SIGNED ? JSON.parse(process.env.STORE_SIGNED) : undefined;
const http = store ? await import("node:http") : undefined;

// Puts an object into the store, or gets it.
const ask = (method, query, key, payload) =>
  new Promise((resolve, reject) => {
    const headers = signed ? {} : { authorization: `Bearer ${process.env.STORE_TOKEN}` };
    if (payload !== undefined) headers["content-length"] = payload.length;
    const path = signed ? signed[key][method] : `/${query.Bucket}/${key}`;
    const request = http.request(store, { method, path, headers, agent: false, timeout: 60_000 }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("error", reject);
      response.on("end", () => {
        const content = Buffer.concat(parts);
        if (response.statusCode === 200) resolve(content);
        else reject(new Error(`${method} ${key}: ${response.statusCode} ${content.toString("utf8", 0, 200)}`));
      });
    });
    request.on("timeout", () => request.destroy(new Error(`${method} ${key}: no answer`)));
    request.on("error", reject);
    request.end(payload);
  });

// Gets a payload, which must have this length.
const get = async (query, key, length) => {
  const content = await ask("GET", query, key);
  if (content.length !== length) throw new Error(`${key} has ${content.length} bytes instead of ${length}`);
  return content;
};

export const handler = async (event, context) => {
  // A request by HTTP, or a call of the function before.
  const isFirst = event.requestContext !== undefined;
  const query = isFirst ? (event.queryStringParameters ?? {}) : event;
  let stamps = [...(isFirst ? [] : query.TimestampChain), String(Date.now())];
  const length = Number(query.PayloadLengthBytes ?? 0);
  const stored = query.StorageTransfer === "true";
  let payload;
  if (stored) payload = isFirst ? Buffer.alloc(length, "x") : await get(query, query.Key, length);
  const limit = Number(query.IncrementLimit ?? 0);
  let spun = 0;
  while (spun < limit) spun += 1;
  let others = query.DataTransferChainIDs ?? "[]";
  if (isFirst) others = others.replace(/[[\]]/g, "").split(" ").filter(Boolean);
  const number = String(stamps.length);
  const key = signed ? number : `transfer-payload-${context.awsRequestId}-${number}`;
  if (stored && (others.length > 0 || isFirst)) {
    await ask("PUT", query, key, payload);
    payload = undefined;
  }
  if (others.length > 0) {
    const call = {
      IncrementLimit: query.IncrementLimit ?? 0,
      DataTransferChainIDs: others.slice(1),
      TimestampChain: stamps,
    };
    if (stored) Object.assign(call, { PayloadLengthBytes: length, StorageTransfer: "true", Bucket: query.Bucket, Key: key });
    else call.TransferPayload = isFirst ? "x".repeat(length) : query.TransferPayload;
    stamps = (await context.chain.call(others[0], call)).TimestampChain;
  } else if (stored && isFirst) {
    // Nobody is next.
    await get(query, key, length);
  } else if (isFirst) {
    Buffer.alloc(length);
  }
  const body = { RequestID: context.awsRequestId, TimestampChain: stamps };
  if (!isFirst) return body;
  return { statusCode: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
};
