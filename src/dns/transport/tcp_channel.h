// A TCP connection to a server, or a stream of dns::Transport: queries are pipelined, and answered
// in any order (RFC 7766). It is kept for some seconds without queries; meanwhile it does not keep
// the loop running.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/net/socket_stream.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "dns_message/reader.h"

namespace tambour::dns::detail {

class Engine;
class Query;
class Server;

class TcpChannel {
 public:
  TcpChannel(Engine& engine, Server& server) noexcept : engine_(engine), server_(server) {}
  TcpChannel(const TcpChannel&) = delete;
  TcpChannel& operator=(const TcpChannel&) = delete;

  /// Connects if necessary, and sends `packet`, which begins with `id`. A response is passed to the
  /// query until forget(). The query must not wait here already.
  void send(Query& query, std::uint16_t id, std::string_view packet);
  void forget(const Query& query) noexcept;
  [[nodiscard]] bool has_id(std::uint16_t id) const noexcept;
  /// Connects again, and sends all queries again, if nothing was received for some seconds after
  /// `sent_ns`: the server may have lost the connection. Must not be called by a task of the
  /// channel.
  void renew_if_silent(std::int64_t sent_ns);

  /// Closes the connection if it has no queries and was not used since `since_ns`. Returns the time
  /// at which it was last used; the end of time if it is closed.
  std::int64_t close_if_idle(std::int64_t since_ns) noexcept;
  /// Must not be called by a task of the channel.
  void close() noexcept;
  /// In a forked child that has lost the descriptor.
  void disown() noexcept;

 private:
  struct Pending {
    std::uint16_t id;
    Query* query;  ///< No other one has the same, so that a query may end when its attempt fails.
    std::string packet;  ///< With its length, to be sent again.
  };

  void start_tasks();
  Task<Result<SocketStream>> connect();
  Task<> write();
  Task<> read();
  // These return false if the connection has ended.
  Task<bool> write_all();
  Task<bool> read_answers();
  void take_packets();
  /// The connection has ended. Sends what is pending on another one, if this one had answered
  /// before; otherwise the queries fail.
  void fail() noexcept;
  [[nodiscard]] bool send_again() noexcept;
  void end_stream() noexcept;

  Engine& engine_;
  Server& server_;
  std::optional<SocketStream> stream_;
  std::string out_;  ///< What write() has not yet passed to the stream.
  std::string in_;   ///< Bytes of a response that is not complete.
  std::vector<Pending> pending_;
  bool is_writing_ = false;
  bool is_reading_ = false;
  bool in_task_ = false;
  bool has_answered_ = false;  ///< This connection has answered a query.
  bool is_insecure_ = false;   ///< The handshake of TLS has failed.
  std::int64_t used_ns_ = 0;
  std::int64_t received_ns_ = 0;  ///< The last time, or when it was connected.
  /// Last member, because its tasks use the others.
  std::optional<TaskScope> tasks_;
};

}  // namespace tambour::dns::detail
