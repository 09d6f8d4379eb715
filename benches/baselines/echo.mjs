// A bare Node.js HTTP server: sends back what it gets; at /read, reads a file first.
import fs from 'node:fs';
import http from 'node:http';

const server = http.createServer((request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', async () => {
    if (request.url === '/read') {
      await fs.promises.readFile('/proc/self/status');
    }
    response.end(Buffer.concat(pieces));
  });
});
server.listen(Number(process.argv[2]), '127.0.0.1');
