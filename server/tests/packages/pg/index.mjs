// pg, fetch, and what is under them.

import dns from 'node:dns';
import https from 'node:https';
import net from 'node:net';
import pg from 'pg';

let pool;
let ended = 0;

const parts = {
  async fetch() {
    return await (await fetch('http://api.example.com/')).text();
  },
  async https({ ca }) {
    return await new Promise((resolve, reject) => {
      const request = https.get('https://api.example.com/', { ca, timeout: 20_000 }, (response) => {
        let text = '';
        response.on('data', (data) => {
          text += data;
        });
        response.on('end', () => resolve(text));
      });
      request.on('error', reject);
    });
  },
  async pg({ postgresql, who }) {
    const client = new pg.Client({ connectionString: postgresql, connectionTimeoutMillis: 20_000 });
    await client.connect();
    try {
      const found = await client.query('select $1::text as who, 6 * 7 as answer', [who]);
      return [found.rows[0].who, found.rows[0].answer];
    } finally {
      await client.end();
    }
  },
  // A pool that lives as long as the instance does. It says that a connection has ended by an event, which ends the process
  // if nobody listens.
  async pool({ postgresql }) {
    if (pool === undefined) {
      pool = new pg.Pool({ connectionString: postgresql, max: 1, idleTimeoutMillis: 0 });
      pool.on('error', () => {
        ended += 1;
      });
    }
    const found = await pool.query('select pg_backend_pid() as backend');
    return [found.rows[0].backend, ended];
  },
  // The name has an address of each family, and nobody answers at the one that is tried first: the other is tried soon after.
  async net() {
    return await new Promise((resolve, reject) => {
      const socket = net.connect({ host: 'both.example.com', port: 80, autoSelectFamily: true });
      let text = '';
      socket.on('connect', () => socket.write('GET / HTTP/1.0\r\n\r\n'));
      socket.on('data', (data) => {
        text += data;
      });
      socket.on('end', () => resolve(text.split('\r\n').pop()));
      socket.on('error', reject);
    });
  },
  async lookup() {
    return (await dns.promises.lookup('api.example.com', { all: true })).map((one) => one.address).sort();
  },
  // c-ares, which reads /etc/resolv.conf itself and asks by its own sockets.
  async resolve4() {
    return await dns.promises.resolve4('api.example.com');
  },
  async resolve6() {
    return await dns.promises.resolve6('api.example.com');
  },
  async resolveTxt() {
    return await dns.promises.resolveTxt('api.example.com');
  },
  // An address that no name has led to.
  async address({ address }) {
    return await new Promise((resolve, reject) => {
      const socket = net.connect({ host: address, port: 80 });
      socket.on('connect', () => resolve('connected'));
      socket.on('error', reject);
    });
  },
};

// The code at the bottom of an error: of the cause, or of the attempts at each address.
const codeOf = (error) => error.code ?? codeOf(error.cause ?? error.errors?.[0] ?? { code: null });

export const handler = async (event) => {
  const answers = {};
  for (const name of event.do) {
    try {
      answers[name] = { answer: await parts[name](event) };
    } catch (error) {
      answers[name] = { error: `${error.name}: ${error.message}`, errno: codeOf(error) };
    }
  }
  return answers;
};
