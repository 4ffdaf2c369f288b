// The other end of peers_test: a client or an echo server of the package ws.
//
//     peers.js client URL [deflate]   sends messages of many sizes, and expects them back
//     peers.js server                 prints its port, and echoes until its input ends
'use strict';
const assert = require('assert');
const {once} = require('events');
const {randomBytes} = require('crypto');
const {WebSocket, WebSocketServer} = require('ws');

const sizes = [0, 1, 125, 126, 127, 65535, 65536, 300000];

async function client(url, extension) {
  const socket = new WebSocket(url, ['v9.chat', 'v1.chat'],
                               {perMessageDeflate: extension === 'deflate'});
  const received = [];
  let arrived = () => {};
  socket.on('message', (data, isBinary) => {
    received.push(isBinary ? data : data.toString());
    arrived();
  });
  const next = async () => {
    while (received.length === 0) await new Promise((resolve) => { arrived = resolve; });
    return received.shift();
  };
  await once(socket, 'open');
  assert.strictEqual(socket.protocol, 'v1.chat');
  assert.strictEqual(socket.extensions !== '', extension === 'deflate');
  for (const size of sizes) {
    for (const message of ['\u00fc'.repeat(size / 2) + 'x'.repeat(size % 2), randomBytes(size)]) {
      socket.send(message);
      assert.deepStrictEqual(await next(), message);
    }
  }
  for (const part of ['frag', 'ment', '']) socket.send(part, {fin: false});
  socket.send('ed');
  assert.strictEqual(await next(), 'fragmented');
  for (let i = 0; i < 10; ++i) {
    socket.ping('payload ' + i);
    assert.strictEqual((await once(socket, 'pong')).toString(), 'payload ' + i);
  }
  const messages = [...Array(500)].map(() => randomBytes(100));
  for (const message of messages) socket.send(message);
  for (const message of messages) assert.deepStrictEqual(await next(), message);
  socket.close(4001, 'done');
  assert.strictEqual((await once(socket, 'close'))[0], 4001);
  console.log('ok');
}

function server() {
  const listening = new WebSocketServer({
    host: '127.0.0.1',
    port: 0,
    perMessageDeflate: true,
    handleProtocols: () => 'v1.chat',
  });
  listening.on('listening', () => console.log(listening.address().port));
  listening.on('connection', (socket) => {
    socket.on('message', (data, isBinary) => socket.send(data, {binary: isBinary}));
  });
  process.stdin.on('end', () => process.exit()).resume();
}

if (process.argv[2] === 'client') {
  client(process.argv[3], process.argv[4]);
} else {
  server();
}
