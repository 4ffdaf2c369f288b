// A UDP socket that is connected to one server, for a limited number of queries.
//
// The kernel chooses a random port, and drops datagrams from other addresses. The sockets of a
// server are replaced by others with other ports, so that an off-path attacker must guess port and
// id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tambour/detail/namespaces.h>

#include "dns/transport/send_queue.h"
#include "dns_message/reader.h"
#include "loop/service_watch.h"

namespace tambour::detail::loop {
class Core;
}

namespace tambour::dns::detail {

class Engine;
class Query;
class Server;

class UdpPort {
 public:
  /// After these, the port gets no more queries.
  static constexpr unsigned queries_max = 128;

  UdpPort(Engine& engine, Server& server);
  UdpPort(const UdpPort&) = delete;
  UdpPort& operator=(const UdpPort&) = delete;
  ~UdpPort();

  /// Fails with the errors of socket(2), connect(2), and watching.
  [[nodiscard]] Result<> open() noexcept;

  /// Sends `packet`, which begins with `id`, at the end of the iteration. A response is passed to
  /// the query until forget(). `is_repeated`: an earlier packet may have been lost, perhaps because
  /// of the way in which it was sent, so this one is sent by itself.
  void send(Query& query, std::uint16_t id, std::string_view packet, bool is_repeated);
  /// Removes what waits for a response with this id.
  void forget(std::uint16_t id) noexcept;
  [[nodiscard]] bool has_id(std::uint16_t id) const noexcept;

  /// Sends what send() has queued.
  void flush();

  [[nodiscard]] bool is_idle() const noexcept {
    return pending_.empty() && queue_.empty() && !in_use_;
  }
  /// True if packets wait for flush().
  [[nodiscard]] bool is_queued() const noexcept { return is_queued_; }
  [[nodiscard]] bool is_spent() const noexcept { return served_ >= queries_max || failed_; }
  [[nodiscard]] std::int64_t used_ns() const noexcept { return used_ns_; }
  /// In a forked child that has lost the descriptor.
  void disown() noexcept { fd_ = -1; }

 private:
  struct Pending {
    std::uint16_t id;
    Query* query;
  };

  void receive();
  void take(Bytes packet);
  void fail();

  /// While one exists, the port is not idle: its functions are on the stack.
  struct InUse {
    explicit InUse(UdpPort& used) noexcept : port(used) { port.in_use_ = true; }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;
    ~InUse() { port.in_use_ = false; }
    UdpPort& port;
  };

  Engine& engine_;
  Server& server_;
  int fd_ = -1;
  unsigned served_ = 0;
  bool failed_ = false;
  bool in_use_ = false;
  bool is_queued_ = false;  ///< In the engine's list of ports to flush.
  std::int64_t used_ns_ = 0;
  std::vector<Pending> pending_;
  SendQueue queue_;
  loop::ServiceWatch watch_;
};

}  // namespace tambour::dns::detail
