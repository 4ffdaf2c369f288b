// TcpChannel: connects, writes queries that are queued, reads answers, and fails the queries whose
// connection ends.
#include "dns/transport/tcp_channel.h"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

#include <tambour/net/tcp_stream.h>
#include <tambour/task/sleep.h>

#include "dns/resolver/engine.h"
#include "dns/resolver/query.h"
#include "dns/transport/server.h"
#include "loop/core.h"
#include "task/time_limit.h"

namespace tambour::dns::detail {
namespace {

constexpr std::size_t read_bytes = 4096;
/// A server that is alive may need seconds to find an answer.
constexpr std::int64_t silence_ns = 2'000'000'000;

}  // namespace

void TcpChannel::send(Query& query, std::uint16_t id, std::string_view packet) {
  std::string framed;
  framed += static_cast<char>(packet.size() >> 8U);
  framed += static_cast<char>(packet.size());
  framed += packet;
  out_ += framed;
  pending_.push_back({.id = id, .query = &query, .packet = std::move(framed)});
  used_ns_ = engine_.core().now_ns();
  engine_.count_tcp_sent();
  try {
    start_tasks();
  } catch (...) {
    forget(query);
    throw;
  }
}

void TcpChannel::start_tasks() {
  if (!tasks_) tasks_.emplace(engine_.loop());
  if (!is_writing_ && !out_.empty()) {
    is_writing_ = true;
    tasks_->spawn(write());
  }
  if (!is_reading_ && stream_ && !pending_.empty()) {
    is_reading_ = true;
    tasks_->spawn(read());
  }
}

void TcpChannel::forget(const Query& query) noexcept {
  std::erase_if(pending_, [&](const Pending& pending) { return pending.query == &query; });
  if (!pending_.empty() || in_task_) return;
  // A wait for a response keeps the loop running.
  if (is_writing_) return close();
  tasks_.reset();
  is_reading_ = false;
}

bool TcpChannel::has_id(std::uint16_t id) const noexcept {
  return std::ranges::find(pending_, id, &Pending::id) != pending_.end();
}

Task<> TcpChannel::write() {
  bool has_failed = true;
  try {
    has_failed = !co_await write_all();
  } catch (const std::bad_alloc&) {
    stream_.reset();
  }
  is_writing_ = false;
  // The reader notices the error, too, unless it has ended.
  if (has_failed && !is_reading_) fail();
}

Task<Result<SocketStream>> TcpChannel::connect() {
  if (dns::Transport* const transport = engine_.options().transport.get()) {
    auto connected = co_await transport->connect(server_.endpoint());
    co_return connected;
  }
  auto connected = co_await TcpStream::connect(server_.endpoint());
  if (!connected) co_return std::unexpected(connected.error());
  co_return SocketStream(std::move(*connected));
}

Task<bool> TcpChannel::write_all() {
  if (!stream_) {
    // A transport may fail at once, and a query must not end while it is being sent.
    static_cast<void>(co_await sleep_for(Duration::zero(), {}));
    // While there are queries, nothing else ends it: the kernel tries for minutes.
    auto connected = co_await task::within(engine_.servers()->conf->timeout, connect());
    if (!connected) {
      // Other than an error of the network, an error of TLS does not go away.
      is_insecure_ = connected.error().category() != system_error(0).category();
      co_return false;
    }
    stream_ = std::move(*connected);
    has_answered_ = false;
    received_ns_ = engine_.core().now_ns();
    in_.clear();
    start_tasks();
  }
  while (!out_.empty()) {
    const std::string bytes = std::exchange(out_, {});
    const auto written = co_await stream_->write(std::string_view(bytes));
    if (!written) co_return false;
  }
  co_return true;
}

Task<> TcpChannel::read() {
  bool has_failed = true;
  try {
    has_failed = !co_await read_answers();
  } catch (const std::bad_alloc&) {
    in_task_ = false;
  }
  is_reading_ = false;
  if (has_failed) fail();
}

Task<bool> TcpChannel::read_answers() {
  std::array<std::byte, read_bytes> bytes;
  while (!pending_.empty()) {
    const auto got = co_await stream_->read(bytes);
    if (!got || *got == 0) co_return false;
    in_.append(reinterpret_cast<const char*>(bytes.data()), *got);
    received_ns_ = engine_.core().now_ns();
    in_task_ = true;
    take_packets();
    in_task_ = false;
  }
  co_return true;
}

void TcpChannel::take_packets() {
  std::size_t at = 0;
  while (in_.size() - at >= 2) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(in_[at + i]); };
    const std::size_t size = byte(0) * 256U + byte(1);
    if (in_.size() - at - 2 < size) break;
    const Bytes packet = as_bytes(std::string_view(in_).substr(at + 2, size));
    at += 2 + size;
    Reader reader(packet);
    const std::uint16_t id = reader.u16();
    if (reader.has_failed()) continue;
    const auto pending = std::ranges::find(pending_, id, &Pending::id);
    if (pending == pending_.end()) continue;  // The answer to a query that was dropped.
    used_ns_ = engine_.core().now_ns();
    // It may be the answer to a dropped query with the same id; then this query waits on.
    if (pending->query->take_tcp(server_, id, packet)) has_answered_ = true;
  }
  in_.erase(0, at);
}

void TcpChannel::fail() noexcept {
  // The other task ends when the stream is closed, and calls this function.
  stream_.reset();
  in_.clear();
  out_.clear();
  if (is_reading_ || is_writing_) return;
  // Servers close connections without queries; it may just have happened.
  if (std::exchange(has_answered_, false) && send_again()) return;
  if (server_.is_tcp_only()) server_.refused(engine_.core().now_ns());
  const bool is_insecure = std::exchange(is_insecure_, false);
  const dns::ErrorCode error =
      is_insecure ? dns::ErrorCode::insecure_server : dns::ErrorCode::timeout;
  const std::vector<Pending> pending = std::exchange(pending_, {});
  in_task_ = true;
  for (const Pending& entry : pending) entry.query->attempt_failed(server_, nullptr, error);
  in_task_ = false;
}

void TcpChannel::renew_if_silent(std::int64_t sent_ns) {
  const std::int64_t since_ns = std::max(received_ns_, sent_ns);
  if (!stream_ || engine_.core().now_ns() - since_ns < silence_ns) return;
  end_stream();
  // If there is no memory, the queries time out.
  static_cast<void>(send_again());
}

bool TcpChannel::send_again() noexcept {
  try {
    for (const Pending& pending : pending_) out_ += pending.packet;
    start_tasks();
    return true;
  } catch (const std::bad_alloc&) {
    out_.clear();
    return false;
  }
}

std::int64_t TcpChannel::close_if_idle(std::int64_t since_ns) noexcept {
  if (pending_.empty() && !is_reading_ && !is_writing_ && used_ns_ <= since_ns) close();
  return stream_ ? used_ns_ : std::numeric_limits<std::int64_t>::max();
}

void TcpChannel::end_stream() noexcept {
  tasks_.reset();
  is_reading_ = is_writing_ = false;
  stream_.reset();
  in_.clear();
  out_.clear();
}

void TcpChannel::close() noexcept {
  end_stream();
  pending_.clear();
}

void TcpChannel::disown() noexcept {
  if (stream_) static_cast<void>(stream_->release());
}

}  // namespace tambour::dns::detail
