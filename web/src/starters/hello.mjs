/** `event` is the parsed JSON of the request; what is returned becomes the answer. */
export const handler = async (event, context) => {
  // Called by its URL, `?name=Ada` is in the query; called with an event, the name is in that.
  const name = event?.queryStringParameters?.name ?? event?.name ?? "world";
  console.log(`saying hello to ${name}`);
  return {
    message: `Hello, ${name}!`,
    invocation: context.awsRequestId,
  };
};
