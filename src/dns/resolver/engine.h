// The resolver of one loop: configuration, cache and queries in flight.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/dns/resolver.h>
#include <tambour/loop/event_loop.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "dns/addresses/address_order.h"
#include "dns/configuration.h"
#include "dns/resolver/cache.h"
#include "dns/resolver/entropy.h"
#include "dns/resolver/query.h"
#include "dns/resolver/question.h"
#include "dns/transport/server.h"
#include "loop/core.h"

namespace tambour::dns::detail {

class Engine;

/// A task's reference to the engine that it waits for. Null when the engine was destroyed.
class EngineReference : private detail::ListHook<EngineReference> {
 public:
  explicit EngineReference(Engine& engine) noexcept;
  EngineReference(const EngineReference&) = delete;
  EngineReference& operator=(const EngineReference&) = delete;
  ~EngineReference() = default;

  [[nodiscard]] explicit operator bool() const noexcept { return engine_ != nullptr; }
  [[nodiscard]] Engine* operator->() const noexcept { return engine_; }

 private:
  friend class Engine;
  friend class detail::IntrusiveList<EngineReference>;
  Engine* engine_;
};

class Engine : private detail::ListHook<Engine> {
 public:
  /// For recvmmsg(2); shared by all ports.
  struct Buffers {
    static constexpr std::size_t count = 16;
    /// More than any server may send: dns::Edns::udp_bytes_default.
    static constexpr std::size_t bytes_each = 1536;
    std::array<mmsghdr, count> messages;
    std::array<iovec, count> vectors;
    std::array<std::array<std::byte, bytes_each>, count> bytes;
  };

  Engine(EventLoop& loop, dns::ResolverOptions options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  [[nodiscard]] EventLoop& loop() const noexcept { return loop_; }
  [[nodiscard]] loop::Core& core() const noexcept { return core_; }
  [[nodiscard]] backend::System& system() const noexcept { return core_.backend().system(); }
  [[nodiscard]] const dns::ResolverOptions& options() const noexcept { return options_; }
  [[nodiscard]] Entropy& entropy() noexcept { return entropy_; }
  /// The preferred one first. See AddressOrder::sort().
  void sort(std::vector<IpAddress>& addresses) {
    // It may open sockets.
    check_idle_later();
    order_.sort(addresses, core_.now_ns());
  }
  [[nodiscard]] Buffers& buffers();
  /// For a query that is being written.
  [[nodiscard]] std::string& packet() noexcept { return packet_; }

  /// Examines the files if it is time. Call it before each lookup.
  void refresh() {
    if (configuration_.refresh(core_.now_ns()) || servers_ == nullptr) use_configuration();
  }
  [[nodiscard]] const Configuration& configuration() const noexcept { return configuration_; }
  [[nodiscard]] const std::shared_ptr<ServerSet>& servers() const noexcept { return servers_; }

  /// Returns the answer if it is in the cache, with its age. Otherwise sends a query, or joins an
  /// equal question in flight, and returns null; the answer is passed to `waiter` later. Returns an
  /// error as an answer if too many lookups wait.
  [[nodiscard]] Cache::Hit look_up(const QuestionKey& key, Waiter& waiter);
  void clear_cache() noexcept { cache_.clear(); }

  // For queries.
  /// Removes the query and passes the answer on. Destroys the query.
  void end(Query& query, const AnswerPointer& answer) noexcept;
  /// A query without waiters. Destroys it.
  void drop(Query& query) noexcept;
  void waiter_left() noexcept { --waiting_; }
  /// Keeps a set of servers until no callback of theirs is on the stack.
  void retire(std::shared_ptr<ServerSet> set) noexcept;

  // For ports.
  void flush_later(UdpPort& port) {
    to_flush_.push_back(&port);
    check_idle_later();
  }
  void forget(const UdpPort& port) noexcept { std::erase(to_flush_, &port); }
  void count_udp_sent(std::size_t count) noexcept { stats_.udp_sent += count; }
  void count_tcp_sent() noexcept {
    ++stats_.tcp_sent;
    check_idle_later();
  }
  void count_retry() noexcept { ++stats_.retries; }
  void count_rejected() noexcept { ++stats_.rejected; }
  void count_fallback() noexcept { ++stats_.fallbacks; }
  [[nodiscard]] dns::ResolverStats stats() const noexcept;

  // For the service of the loop.
  /// Sends what was queued in this iteration; returns when there is something to close.
  std::int64_t before_wait() noexcept;
  void expire(std::int64_t now_ns);
  void disown() noexcept;
  void reopen();

 private:
  friend class Service;
  friend class EngineReference;
  friend class detail::IntrusiveList<Engine>;
  /// How long sockets without queries stay open.
  static constexpr std::int64_t idle_ns = 10'000'000'000;
  using Queries = std::unordered_map<std::string, std::unique_ptr<Query>, KeyHash, std::equal_to<>>;

  void use_configuration();
  void keep(std::string&& key, const AnswerPointer& answer) noexcept;
  void start_queued() noexcept;
  /// Sockets are open from now on: when they are idle, they are closed.
  void check_idle_later() noexcept {
    idle_check_ns_ = std::min(idle_check_ns_, base::saturating_add(core_.now_ns(), idle_ns));
  }

  EventLoop& loop_;
  loop::Core& core_;
  dns::ResolverOptions options_;
  Entropy entropy_;
  AddressOrder order_;
  Configuration configuration_;
  KeyHash hash_;
  Cache cache_;
  std::shared_ptr<ServerSet> servers_;
  std::shared_ptr<ServerSet> retired_;  ///< Linked by `next_retired`.
  detail::IntrusiveList<EngineReference> references_;
  Queries queries_{0, hash_};
  detail::IntrusiveList<Query> queued_;  ///< Not started, because too many are in flight.
  std::size_t started_ = 0;
  std::size_t waiting_ = 0;
  std::vector<UdpPort*> to_flush_;
  std::unique_ptr<Buffers> buffers_;
  std::string packet_;
  std::int64_t idle_check_ns_;  ///< The end of time if no socket is open.
  bool ends_ = false;
  dns::ResolverStats stats_{};
};

}  // namespace tambour::dns::detail
