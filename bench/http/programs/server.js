// The HTTP server of the subject node: server.js PORT BYTES FOLDER plain|tls.
'use strict';
const fs = require('fs');
const [port, size, folder, transport] = process.argv.slice(2);
const bytes = Number(size);
const text = Buffer.alloc(bytes, 'b');

function send(response, type, body) {
  response.writeHead(200, {'Content-Type': type, 'Content-Length': Buffer.byteLength(body)});
  response.end(body);
}

function answer(request, response) {
  if (request.url === '/file') return send(response, 'text/plain', text);
  if (request.url === '/json') {
    const items = [];
    for (let id = 1000; items.length < Math.floor(bytes / 44); ++id)
      items.push({id, name: `item ${id}`, done: false});
    return send(response, 'application/json', JSON.stringify(items));
  }
  request.resume();
  request.on('end', () => send(response, 'text/plain', 'ok'));
}

let server;
if (transport === 'tls') {
  const pem = fs.readFileSync(`${folder}/server.pem`);
  server = require('https').createServer({key: pem, cert: pem}, answer);
} else {
  server = require('http').createServer(answer);
}
server.keepAliveTimeout = 600000;
server.listen(Number(port), '127.0.0.1', 4096);
