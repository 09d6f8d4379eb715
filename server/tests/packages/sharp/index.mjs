// sharp (libvips) starts threads with the first image: here while the module is imported.
import sharp from "sharp";

const background = { r: 200, g: 30, b: 60 };
const photo = await sharp({ create: { width: 640, height: 480, channels: 3, background } }).png().toBuffer();

export const handler = async ({ width }) => {
  const { data, info } = await sharp(photo).resize({ width }).raw().toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, pixel: [...data.subarray(0, 3)] };
};
