// Sends a message to many connections, as chat and publish/subscribe servers do; like the
// ChannelGroup of Netty.
//
//   ConnectionGroup clients(loops);
//   server.serve({.on_connection = [&](Connection& client) { clients.add(client); },
//                 .on_message = [&](Connection&, Buffer& bytes) { clients.send(std::move(bytes));
//                 }});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <tambour/base/callback.h>
#include <tambour/bytes/buffer.h>
#include <tambour/net/connection.h>

namespace tambour::detail::server {
class GroupShard;
}  // namespace tambour::detail::server

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;
class LoopGroup;

/// What happens to a member that has ConnectionGroupOptions::unsent_bytes_max or more unsent bytes
/// when a message is sent, because its peer does not read.
enum class WhenSlow : std::uint8_t {
  skip,   ///< The member does not get the message.
  close,  ///< The member is closed; on_close gets ENOBUFS.
};

/// What happens to members of a ConnectionGroup that read slowly.
struct ConnectionGroupOptions {
  /// In bytes. A member below this limit gets the whole message, whose bytes it shares with the
  /// other members. ConnectionLimits::unsent_bytes_max applies too.
  std::size_t unsent_bytes_max = std::size_t{1024} * 1024;
  WhenSlow when_slow = WhenSlow::skip;
  /// The limit of the messages that wait for one loop, in bytes, including the memory of the queue
  /// itself. Messages wait while the loop is busy or does not run.
  std::size_t queued_bytes_max = std::size_t{16} * 1024 * 1024;
  /// Invoked for each skipped member on the thread of its loop, with the number of skipped
  /// messages. If the group has several loops, several threads invoke it concurrently.
  Callback<void(Connection&, std::size_t)> on_skip{};
};

/// Counts messages to single members since the group was made.
struct ConnectionGroupStats {
  std::uint64_t sent = 0;
  std::uint64_t skipped = 0;
  std::uint64_t closed = 0;  ///< Members that were closed by WhenSlow::close.
};

/// The connections that receive the messages of send(): of one loop, or of the loops of a
/// LoopGroup.
///
/// A message is queued once for each loop, without a lock. Members share its bytes. Consecutive
/// messages with the same recipients are combined: each loop sends them with one system call per
/// member. Order: messages that one thread sends arrive in that order, at each member. A message is
/// sent to the connections that are members when their loop takes it, soon after send(). Lifetime:
/// a connection that ends, or moves to another loop (Connection::move_to()), leaves the group;
/// on_move may add it again. The group may be destroyed on any thread, inside callbacks too;
/// messages that no loop has taken by then are lost. Thread: functions that have a Connection as
/// argument must be called on the thread of its loop; the others may be called on any thread. The
/// loops must exist when a message is sent. Errors: exceptions of on_high_water and on_skip
/// propagate out of the loop's run(), after all members got the message. If memory is exhausted
/// while a loop sends, the member is closed with ENOMEM.
class ConnectionGroup {
 public:
  /// Throws std::bad_alloc.
  explicit ConnectionGroup(EventLoop& loop, ConnectionGroupOptions options = {});
  explicit ConnectionGroup(LoopGroup& loops, ConnectionGroupOptions options = {});
  ConnectionGroup(const ConnectionGroup&) = delete;
  ConnectionGroup& operator=(const ConnectionGroup&) = delete;
  ~ConnectionGroup();

  /// The connection's loop must be one of the group's; aborts otherwise. No effect on a member and
  /// on a connection that is not open. Throws std::bad_alloc.
  void add(Connection& connection);
  /// Messages that the loop has not taken yet are not sent to the connection. No effect if it is
  /// not a member.
  void remove(Connection& connection) noexcept;
  [[nodiscard]] bool contains(const Connection& connection) const noexcept;

  /// Sends the message to all members. Returns false if a loop has queued_bytes_max or more bytes
  /// waiting: the members on that loop do not get the message, which counts as skipped. Throws
  /// like EventLoop::post(); the message is then queued for some of the loops only.
  bool send(Buffer message);
  bool send(std::string_view message) { return send(Buffer(message)); }
  /// Sends the message to all members but one, for example to all except its author.
  bool send_except(const Connection& excepted, Buffer message);
  bool send_except(const Connection& excepted, std::string_view message) {
    return send_except(excepted, Buffer(message));
  }

  /// The number of members.
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] ConnectionGroupStats stats() const noexcept;

 private:
  [[nodiscard]] detail::server::GroupShard* shard_of(const Connection& connection) const noexcept;
  bool queue(const Buffer& message, std::uint64_t excepted);

  /// One for each loop.
  std::vector<std::shared_ptr<detail::server::GroupShard>> shards_;
};

}  // namespace tambour

#pragma GCC visibility pop
