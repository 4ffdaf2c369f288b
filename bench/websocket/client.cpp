#include "websocket/client.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "common/network.h"
#include "common/program.h"

namespace bench {
namespace {

/// Text that compresses about as well as JSON.
std::string message_of(int size) {
  std::string text;
  for (unsigned i = 0; int(text.size()) < size; ++i)
    text += "{\"id\":" + std::to_string(i * 7919 % 10007) + ",\"ok\":true},";
  text.resize(std::size_t(size));
  return text;
}

/// A message of permessage-deflate: raw deflate without the last four bytes of the flush.
std::string deflated(const std::string& text) {
  z_stream stream{};
  if (deflateInit2(&stream, 1, Z_DEFLATED, -12, 5, Z_DEFAULT_STRATEGY) != Z_OK)
    fail("client: deflateInit2");
  std::string out(deflateBound(&stream, text.size()) + 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = uInt(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = uInt(out.size());
  if (deflate(&stream, Z_SYNC_FLUSH) != Z_OK || stream.avail_in > 0) fail("client: deflate");
  out.resize(stream.total_out - 4);
  deflateEnd(&stream);
  return out;
}

/// A masked frame: RFC 6455, section 5.2.
std::string frame_of(const std::string& payload, bool is_compressed) {
  std::string frame(1, char(is_compressed ? 0xc1 : 0x81));
  const auto size = std::uint64_t(payload.size());
  int size_bytes = 0;
  if (size < 126) {
    frame += char(0x80 | size);
  } else if (size < 65536) {
    frame += char(0x80 | 126);
    size_bytes = 2;
  } else {
    frame += char(0x80 | 127);
    size_bytes = 8;
  }
  for (int i = size_bytes - 1; i >= 0; --i) frame += char(size >> (8 * i));
  constexpr std::array<char, 4> key = {0x12, 0x34, 0x56, 0x78};
  frame.append(key.data(), key.size());
  for (std::size_t i = 0; i < payload.size(); ++i) frame += char(payload[i] ^ key[i % 4]);
  return frame;
}

}  // namespace

WebSocketClients::WebSocketClients(std::uint16_t port, int connections, const WebSocketWork& work)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      in_flight_(work.in_flight),
      connections_(std::size_t(connections)),
      buffer_(256 * 1024) {
  if (epoll_ < 0) fail_errno("client: epoll_create1");
  const std::string text = message_of(work.size);
  const std::string frame = frame_of(work.deflate ? deflated(text) : text, work.deflate);
  frame_bytes_ = frame.size();
  for (int i = 0; i < in_flight_; ++i) requests_ += frame;
  for (Connection& connection : connections_) open(connection, port, work.deflate);
}

WebSocketClients::~WebSocketClients() {
  for (const Connection& connection : connections_) close_with_reset(connection.fd);
  close(epoll_);
}

/// The opening handshake, which blocks.
void WebSocketClients::open(Connection& connection, std::uint16_t port, bool deflate) {
  connection.fd = connect_to(port);
  set_no_delay(connection.fd);
  std::string request = "GET / HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                        "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: "
                        "dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
  if (deflate)
    request +=
        "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; "
        "client_no_context_takeover\r\n";
  request += "\r\n";
  if (::send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL) !=
      ssize_t(request.size()))
    fail_errno("client: send");
  std::string response;
  while (response.find("\r\n\r\n") == std::string::npos) {
    char byte = 0;  // So that no frame is read.
    if (recv(connection.fd, &byte, 1, 0) != 1) fail("client: no response: " + response);
    response += byte;
  }
  if (!response.starts_with("HTTP/1.1 101")) fail("client: unexpected response: " + response);
  if (deflate != (response.find("permessage-deflate") != std::string::npos))
    fail("client: unexpected extensions: " + response);
  fcntl(connection.fd, F_SETFL, O_NONBLOCK);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &connection}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event) != 0) fail_errno("client: epoll_ctl");
}

void WebSocketClients::request(Connection& connection) {
  connection.unsent = requests_.size();
  connection.missing = in_flight_;
  send(connection);
}

void WebSocketClients::send(Connection& connection) {
  while (connection.unsent > 0) {
    const ssize_t done =
        ::send(connection.fd, requests_.data() + requests_.size() - connection.unsent,
               connection.unsent, MSG_NOSIGNAL);
    if (done < 0 && errno == EAGAIN) return watch(connection, true);
    if (done <= 0) fail_errno("client: send");
    connection.unsent -= std::size_t(done);
  }
  watch(connection, false);
}

void WebSocketClients::watch(Connection& connection, bool waits_to_send) {
  if (std::exchange(connection.waits_to_send, waits_to_send) == waits_to_send) return;
  epoll_event event{.events = waits_to_send ? EPOLLIN | EPOLLOUT : EPOLLIN,
                    .data = {.ptr = &connection}};
  if (epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd, &event) != 0) fail_errno("client: epoll_ctl");
}

void WebSocketClients::receive(Connection& connection) {
  const ssize_t got = recv(connection.fd, buffer_.data(), buffer_.size(), 0);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) fail("client: the server closed a connection");
  parse(connection, buffer_.data(), std::size_t(got));
  if (connection.missing == 0 && at_once_) request(connection);
}

void WebSocketClients::parse(Connection& connection, const unsigned char* bytes, std::size_t size) {
  while (size > 0) {
    if (connection.payload > 0) {
      const auto part = std::min<std::uint64_t>(size, connection.payload);
      connection.payload -= part;
      bytes += part;
      size -= part;
      if (connection.payload == 0) end_frame(connection);
      continue;
    }
    connection.header[connection.header_bytes++] = *bytes++;
    --size;
    if (connection.header_bytes < 2) continue;
    const unsigned short_size = connection.header[1];
    const std::size_t header_bytes = short_size < 126 ? 2 : short_size == 126 ? 4 : 10;
    if (connection.header_bytes < header_bytes) continue;
    connection.payload = header_bytes == 2 ? short_size : 0;
    for (std::size_t i = 2; i < header_bytes; ++i)
      connection.payload = connection.payload << 8 | connection.header[i];
    connection.header_bytes = 0;
    if (connection.payload == 0) end_frame(connection);
  }
}

void WebSocketClients::end_frame(Connection& connection) {
  const unsigned first = connection.header[0];
  const bool is_message_end = (first & 0x80) != 0 && (first & 0x08) == 0;
  if ((first & 0x0f) == 8) fail("client: the server has sent a close frame");
  if (!is_message_end) return;
  ++received_;
  if (--connection.missing < 0) fail("client: more messages than were sent");
}

void WebSocketClients::run_once() {
  std::array<epoll_event, 512> events;
  const int count = epoll_wait(epoll_, events.data(), int(events.size()), 5000);
  if (count < 0 && errno != EINTR) fail_errno("client: epoll_wait");
  if (count == 0) fail("client: timeout waiting for a message");
  for (int i = 0; i < count; ++i) {
    Connection& connection = *static_cast<Connection*>(events[std::size_t(i)].data.ptr);
    if ((events[std::size_t(i)].events & EPOLLOUT) != 0) send(connection);
    if ((events[std::size_t(i)].events & ~EPOLLOUT) != 0) receive(connection);
  }
}

std::int64_t WebSocketClients::run(double seconds) {
  const auto before = received_;
  at_once_ = true;
  for (Connection& connection : connections_)
    if (connection.missing == 0) request(connection);
  const auto end = now_ns() + std::int64_t(seconds * 1e9);
  while (now_ns() < end) run_once();
  return received_ - before;
}

void WebSocketClients::broadcast() {
  for (Connection& connection : connections_) connection.missing = 1;
  const auto before = received_;
  connections_.front().unsent = frame_bytes_;
  send(connections_.front());
  while (received_ - before < std::int64_t(connections_.size())) run_once();
}

}  // namespace bench
