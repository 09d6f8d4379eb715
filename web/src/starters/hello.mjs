/** `event` is the parsed JSON of the request; the return value becomes the response. */
export const handler = async (event, context) => {
  // Called by URL, the name comes from the query (`?name=Ada`); invoked with an event, from the event.
  const name = event?.queryStringParameters?.name ?? event?.name ?? "world";
  console.log(`saying hello to ${name}`);
  return {
    message: `Hello, ${name}!`,
    invocation: context.awsRequestId,
  };
};
