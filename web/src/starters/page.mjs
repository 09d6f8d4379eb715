const escaped = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/** Answers requests at the function's URL, as a Lambda function URL would. */
export const handler = async (event, context) => {
  const name = escaped(event?.queryStringParameters?.name ?? "world");
  return {
    statusCode: 200,
    headers: { "content-type": "text/html; charset=utf-8" },
    body: `<!doctype html><title>Hello</title><h1>Hello, ${name}!</h1>`,
  };
};
