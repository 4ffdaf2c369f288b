// The HTTP server of the subject node: server.js PORT BYTES FOLDER plain|tls.
'use strict';
const fs = require('fs');
const zlib = require('zlib');
const [port, size, folder, transport] = process.argv.slice(2);
const bytes = Number(size);
const text = Buffer.alloc(bytes, 'b');

function send(response, type, body) {
  response.writeHead(200, {'Content-Type': type, 'Content-Length': Buffer.byteLength(body)});
  response.end(body);
}

const categories = ['electronics', 'tools', 'books', 'garden'];
const products = Array.from({length: 50}, (_, at) => {
  const id = at + 1;
  return {
    id,
    name: `Item ${id}`,
    category: categories[id % 4],
    price: 10 + id * 37 % 500,
    quantity: 1 + id * 7 % 50,
    active: id % 3 !== 0,
    tags: ['fast', 'new'],
    rating: {score: id * 13 % 50, count: id * 29 % 1000},
  };
});

/** The items of the profiles json and json-comp; the path is PREFIX COUNT. */
function itemsOf(url) {
  const count = Number(url.pathname.slice(url.pathname.lastIndexOf('/') + 1));
  const multiplier = Number(url.searchParams.get('m'));
  const items = products.slice(0, count).map(
      item => ({...item, total: item.price * item.quantity * multiplier}));
  return JSON.stringify({items, count});
}

/** Reads the body and calls done(bytes, text). */
function collect(request, done) {
  let bytes = 0;
  const pieces = [];
  request.on('data', piece => {
    bytes += piece.length;
    if (bytes < 1024) pieces.push(piece);
  });
  request.on('end', () => done(bytes, Buffer.concat(pieces).toString()));
}

/** The profiles of HttpArena: see bench/http/arena.h. Returns whether it is one of them. */
function answerArena(request, response) {
  if (request.url === '/pipeline') {
    send(response, 'text/plain', 'ok');
    return true;
  }
  const url = new URL(request.url, 'http://localhost');
  if (url.pathname === '/baseline11') {
    let sum = 0;
    for (const value of url.searchParams.values()) sum += Number(value);
    collect(request, (_, text) => send(response, 'text/plain', String(sum + Number(text))));
  } else if (url.pathname.startsWith('/json/')) {
    send(response, 'application/json', itemsOf(url));
  } else if (url.pathname.startsWith('/json-comp/')) {
    zlib.gzip(itemsOf(url), {level: 5}, (_, body) => {
      response.setHeader('Content-Encoding', 'gzip');
      send(response, 'application/json', body);
    });
  } else {
    return false;
  }
  return true;
}

function answer(request, response) {
  if (request.url === '/file') return send(response, 'text/plain', text);
  if (request.url === '/json') {
    const items = [];
    for (let id = 1000; items.length < Math.floor(bytes / 44); ++id)
      items.push({id, name: `item ${id}`, done: false});
    return send(response, 'application/json', JSON.stringify(items));
  }
  if (request.url !== '/upload' && answerArena(request, response)) return undefined;
  collect(request, bytes => send(response, 'text/plain', String(bytes)));
  return undefined;
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
