// A bare Node.js HTTP server: takes a whole body and says how long it is.
import http from 'node:http';

const server = http.createServer((request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    const answer = String(Buffer.concat(pieces).length);
    response.writeHead(200, { 'content-length': answer.length });
    response.end(answer);
  });
});
server.listen(Number(process.argv[2]), '127.0.0.1');
