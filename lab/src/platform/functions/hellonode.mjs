// STeLLAR's function: spins, makes a payload, and says when it ran.
export const handler = async (event, context) => {
  const query = event.queryStringParameters ?? {};
  const limit = Number(query.IncrementLimit ?? 0);
  let spun = 0;
  while (spun < limit) spun += 1;
  Buffer.alloc(Number(query.PayloadLengthBytes ?? 0));
  const body = { RequestID: context.awsRequestId, TimestampChain: [String(Date.now())] };
  return { statusCode: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
};
