// A query that is in flight, and the lookups that wait for its response.
//
// The first server is queried at once; if it does not answer within a multiple of its latency, the
// next one is, while answers of the earlier ones are still accepted. After the last server the
// first is queried again, with twice the timeout, until the time of the configuration has passed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/namespaces.h>
#include <tambour/loop/timer.h>

#include "dns/resolver/answer.h"
#include "dns/transport/server.h"

namespace tambour::dns::detail {

class Engine;
class Query;

/// A lookup that waits for an answer. It leaves the query when it is destroyed.
class Waiter : private detail::ListHook<Waiter> {
 public:
  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  /// Invoked once. Must neither destroy this object nor run code of the program.
  virtual void answered(AnswerPointer answer) noexcept = 0;
  /// No effect if it does not wait.
  void leave() noexcept;

 protected:
  ~Waiter() { leave(); }

 private:
  friend class Query;
  friend class detail::IntrusiveList<Waiter>;
  Query* query_ = nullptr;
};

/// In the queue of the engine while it waits to be started.
class Query : public detail::ListHook<Query> {
 public:
  /// Refers to `key`.
  Query(Engine& engine, std::string_view key);
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query();

  [[nodiscard]] std::string_view key() const noexcept { return key_; }
  [[nodiscard]] const ServerSet& servers() const noexcept { return *set_; }
  [[nodiscard]] bool has_waiters() const noexcept { return !waiters_.empty(); }
  void add(Waiter& waiter) noexcept;
  /// Passes the answer to the waiters.
  void finish_waiters(const AnswerPointer& answer) noexcept;

  /// Asks the first server. May end the query, which destroys it.
  void start();
  /// If it fails for lack of memory, tries again when the timer expires.
  void start_or_retry() noexcept;
  /// Sends again if it was started, because all earlier packets are lost.
  void restart();

  // Called by a port or channel; each may end the query, which destroys it.
  void take_udp(Server& server, UdpPort& port, std::uint16_t id, Bytes packet);
  /// Returns false if the packet is not a response to this query, which then waits on.
  bool take_tcp(Server& server, std::uint16_t id, Bytes packet);
  /// `port`: null for TCP. It has forgotten this query. `error`: if it is not `timeout`, the server
  /// is not queried again.
  void attempt_failed(Server& server, const UdpPort* port,
                      dns::ErrorCode error = dns::ErrorCode::timeout) noexcept;

 private:
  friend class Waiter;
  /// A packet whose response is waited for. Over TCP, each server has at most one.
  struct Attempt {
    Server* server;
    UdpPort* port;  ///< Null: over TCP.
    std::uint16_t id;
    bool has_edns;
    std::int64_t sent_ns;
  };
  enum class Transport : std::uint8_t { udp, tcp };

  /// In wire form, in the case in which it is sent.
  [[nodiscard]] std::string_view name() const noexcept {
    return cased_name_.empty() ? name_of_key(key_) : cased_name_;
  }
  void expired();
  void send_to_next();
  void send(Server& server, Transport transport, bool is_probe = false);
  /// Returns false if no server can be queried.
  [[nodiscard]] Server* choose() noexcept;
  [[nodiscard]] bool is_tried(const Server& server) const noexcept {
    return ((tried_ | failed_) >> server.number() & 1U) != 0;
  }
  [[nodiscard]] bool is_plain(const Server& server) const noexcept {
    return (plain_ >> server.number() & 1U) != 0;
  }
  [[nodiscard]] bool has_failed_everywhere() const noexcept;
  void server_failed(Server& server);
  void retry_later() noexcept;
  void start_timer(const Server& server, std::int64_t now_ns) noexcept;
  void take(const Attempt& attempt, Bytes packet, Answer answer, const ResponseInfo& info);
  void try_next(Server& server, dns::ErrorCode error);
  [[nodiscard]] const Attempt* attempt_over_tcp(const Server& server) const noexcept;
  /// Removes the attempt that a response belongs to, so that copies of the response have no effect.
  [[nodiscard]] Attempt end_attempt(Server& server, UdpPort* port, std::uint16_t id) noexcept;
  void forget(const Attempt& attempt) noexcept;
  void forget_attempts() noexcept;
  void finish(const AnswerPointer& answer);
  void finish_with(dns::ErrorCode error);

  Engine& engine_;
  std::string_view key_;
  std::string cased_name_;  ///< Empty: the name is sent in the case of the key.
  std::shared_ptr<ServerSet> set_;
  detail::IntrusiveList<Waiter> waiters_;
  std::vector<Attempt> attempts_;
  std::uint32_t plain_ = 0;   ///< Bits of the servers that are queried without EDNS.
  std::uint32_t tried_ = 0;   ///< Bits of the servers that were queried in this round.
  std::uint32_t failed_ = 0;  ///< Bits of the servers that have answered with an error.
  unsigned rounds_ = 0;
  Server* last_ = nullptr;  ///< The one that the timer is for.
  bool has_sent_ = false;
  bool retried_cookie_ = false;
  dns::ErrorCode error_ = dns::ErrorCode::timeout;
  std::int64_t deadline_ns_ = 0;  ///< 0: not started.
  Timer timer_;
};

}  // namespace tambour::dns::detail
