/** `event` is the parsed JSON of the request; what is returned becomes the answer. */
export const handler = async (event, context) => {
  const name = event?.name ?? "world";
  console.log(`saying hello to ${name}`);
  return {
    message: `Hello, ${name}!`,
    invocation: context.awsRequestId,
  };
};
