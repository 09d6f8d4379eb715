// STeLLAR's function: spins, makes a payload, hands it on along a chain, and says when it ran.
export const handler = async (event, context) => {
  // A request by HTTP, or a call of the function before.
  const isFirst = event.requestContext !== undefined;
  const query = isFirst ? (event.queryStringParameters ?? {}) : event;
  let stamps = [...(isFirst ? [] : query.TimestampChain), String(Date.now())];
  const limit = Number(query.IncrementLimit ?? 0);
  let spun = 0;
  while (spun < limit) spun += 1;
  let others = query.DataTransferChainIDs ?? "[]";
  if (isFirst) others = others.replace(/[[\]]/g, "").split(" ").filter(Boolean);
  const length = Number(query.PayloadLengthBytes ?? 0);
  if (others.length > 0) {
    const call = {
      IncrementLimit: query.IncrementLimit ?? 0,
      DataTransferChainIDs: others.slice(1),
      TimestampChain: stamps,
      TransferPayload: isFirst ? "x".repeat(length) : query.TransferPayload,
    };
    stamps = (await context.chain.call(others[0], call)).TimestampChain;
  } else if (isFirst) {
    Buffer.alloc(length);
  }
  const body = { RequestID: context.awsRequestId, TimestampChain: stamps };
  if (!isFirst) return body;
  return { statusCode: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
};
