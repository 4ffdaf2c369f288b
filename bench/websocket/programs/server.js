// The WebSocket server of the subject node: server.js PORT echo|broadcast plain|deflate.
'use strict';
const {WebSocketServer, WebSocket} = require('ws');
const [port, service, extension] = process.argv.slice(2);

const server = new WebSocketServer({
  host: '127.0.0.1',
  port: Number(port),
  backlog: 4096,
  maxPayload: 16 << 20,
  perMessageDeflate: extension === 'deflate' && {
    serverNoContextTakeover: true,
    clientNoContextTakeover: true,
    threshold: 64,
    zlibDeflateOptions: {level: 1, memLevel: 5, windowBits: 12},
  },
});

server.on('connection', (socket) => {
  socket.on('error', () => {});
  socket.on('message', (data, isBinary) => {
    if (service === 'echo') return socket.send(data, {binary: isBinary});
    for (const client of server.clients)
      if (client.readyState === WebSocket.OPEN) client.send(data, {binary: isBinary});
  });
});
