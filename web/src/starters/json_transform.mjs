/** Validates an order from one system and returns it in the format of another. Errors name the invalid field. */

class Invalid extends Error {
  name = "Invalid";
}

export const handler = async (event, context) => {
  const order = checked(event);
  const lines = order.items.map(line);
  console.log(`order ${order.id}: ${lines.length} lines`);
  return {
    orderNumber: String(order.id),
    customer: order.customer.trim().replace(/\b\w/g, (letter) => letter.toUpperCase()),
    lines,
    totalCents: lines.reduce((sum, { priceCents, quantity }) => sum + priceCents * quantity, 0),
    transformedAt: new Date().toISOString(),
  };
};

function checked(event) {
  if (event === null || typeof event !== "object") throw new Invalid("the event must be an object");
  if (!Number.isInteger(event.id)) throw new Invalid("id must be a whole number");
  if (typeof event.customer !== "string") throw new Invalid("customer must be a string");
  if (!Array.isArray(event.items)) throw new Invalid("items must be a list");
  return event;
}

function line({ sku, quantity = 1, price } = {}) {
  const cents = Math.round(Number(price) * 100);
  if (typeof sku !== "string" || !Number.isFinite(cents)) throw new Invalid("an item needs sku and price");
  if (!Number.isInteger(quantity) || quantity < 1) throw new Invalid(`${sku}: quantity must be at least 1`);
  return { sku: sku.toUpperCase(), quantity, priceCents: cents };
}
