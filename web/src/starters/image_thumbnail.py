"""Creates thumbnails of PNG images with nothing but Python's standard library.

Invoked with {"png": BASE64, "width": PIXELS} it returns {"png": BASE64, "width": …, "height": …}.
Called by URL, it takes the image as the body and returns an image:

    curl --data-binary @photo.png -H "Content-Type: image/png" "URL?width=64" -o small.png
"""

import base64
import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Samples per pixel by colour type: grey, RGB, palette, grey and alpha, RGBA.
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
MAX_PIXELS = 16_000_000


def handler(event, context):
    if "requestContext" not in event:
        width, height, png = thumbnail(base64.b64decode(event["png"]), int(event.get("width", 64)))
        return {"width": width, "height": height, "png": base64.b64encode(png).decode()}
    try:
        body = event.get("body") or ""
        data = base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
        width = int((event.get("queryStringParameters") or {}).get("width", 64))
        _, _, png = thumbnail(data, width)
    except ValueError as error:
        return {"statusCode": 422, "body": f"{error}\n"}
    return {
        "statusCode": 200,
        "headers": {"content-type": "image/png"},
        "body": base64.b64encode(png).decode(),
        "isBase64Encoded": True,
    }


def thumbnail(data, wanted):
    """Width, height and PNG of the image, scaled down to `wanted` pixels in width."""
    width, height, rows = decode(data)
    new_width = max(1, min(wanted, width))
    new_height = max(1, round(height * new_width / width))
    print(f"{width} × {height} to {new_width} × {new_height}")
    return new_width, new_height, encode(new_width, new_height, scale(rows, width, height, new_width, new_height))


def decode(data):
    """Width, height and rows of RGBA bytes."""
    if not data.startswith(SIGNATURE):
        raise ValueError("this is not a PNG image")
    header, palette, transparency, compressed = None, b"", b"", []
    for kind, chunk in chunks(data):
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", chunk)
        elif kind == b"PLTE":
            palette = chunk
        elif kind == b"tRNS":
            transparency = chunk
        elif kind == b"IDAT":
            compressed.append(chunk)
    if header is None:
        raise ValueError("the image has no header")
    width, height, depth, colour, _, _, interlaced = header
    if depth != 8 or interlaced or colour not in CHANNELS:
        raise ValueError("only non-interlaced images with 8 bits per channel are supported")
    if not 0 < width * height <= MAX_PIXELS:
        raise ValueError(f"an image must have at most {MAX_PIXELS} pixels")
    channels = CHANNELS[colour]
    stride = width * channels
    # Never more than the header declares: a small file can decompress to a huge one.
    lines = zlib.decompressobj().decompress(b"".join(compressed), height * (stride + 1))
    if len(lines) < height * (stride + 1):
        raise ValueError("the image is truncated")
    rows, above = [], bytes(stride)
    for number in range(height):
        start = number * (stride + 1)
        above = unfilter(lines[start], bytearray(lines[start + 1 : start + 1 + stride]), above, channels)
        rows.append(to_rgba(above, colour, palette, transparency))
    return width, height, rows


def chunks(data):
    at = len(SIGNATURE)
    while at + 8 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        yield data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        at += length + 12


def unfilter(kind, line, above, step):
    """Reverses the line's filter (PNG specification, section 9)."""
    if kind == 2:
        return bytes((byte + up) & 255 for byte, up in zip(line, above, strict=True))
    if kind not in (0, 1, 3, 4):
        raise ValueError(f"the image uses the unknown filter {kind}")
    for at in range(len(line)) if kind else ():
        left = line[at - step] if at >= step else 0
        up = above[at]
        if kind == 1:
            line[at] = (line[at] + left) & 255
        elif kind == 3:
            line[at] = (line[at] + (left + up) // 2) & 255
        else:
            corner = above[at - step] if at >= step else 0
            guess = left + up - corner
            near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
            line[at] = (line[at] + near[2]) & 255
    return bytes(line)


def to_rgba(line, colour, palette, transparency):
    if colour == 6:
        return line
    out = bytearray()
    for at in range(0, len(line), CHANNELS[colour]):
        if colour == 0:
            out += bytes((line[at], line[at], line[at], 255))
        elif colour == 2:
            out += line[at : at + 3] + b"\xff"
        elif colour == 4:
            out += bytes((line[at], line[at], line[at], line[at + 1]))
        else:
            index = line[at]
            alpha = transparency[index] if index < len(transparency) else 255
            out += palette[3 * index : 3 * index + 3] + bytes((alpha,))
    return bytes(out)


def scale(rows, width, height, new_width, new_height):
    """Each new pixel is the mean of those it covers, colours weighted by opacity."""
    columns = [(x * width // new_width, max((x + 1) * width // new_width, x * width // new_width + 1)) for x in range(new_width)]
    scaled = []
    for y in range(new_height):
        top = y * height // new_height
        bottom = max((y + 1) * height // new_height, top + 1)
        line = bytearray()
        for left, right in columns:
            red = green = blue = opacity = 0
            for row in rows[top:bottom]:
                for at in range(4 * left, 4 * right, 4):
                    alpha = row[at + 3]
                    red += row[at] * alpha
                    green += row[at + 1] * alpha
                    blue += row[at + 2] * alpha
                    opacity += alpha
            covered = opacity or 1
            pixels = (right - left) * (bottom - top)
            line += bytes((red // covered, green // covered, blue // covered, opacity // pixels))
        scaled.append(bytes(line))
    return scaled


def encode(width, height, rows):
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    lines = b"".join(b"\0" + row for row in rows)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(
        struct.pack(">I", len(chunk)) + kind + chunk + struct.pack(">I", zlib.crc32(kind + chunk)) for kind, chunk in parts
    )
