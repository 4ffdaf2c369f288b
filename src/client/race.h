// Concurrent connection attempts to the addresses of a host, which may become known one after the
// other (Happy Eyeballs, RFC 8305), or of the servers that its SRV or HTTPS records name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <tambour/loop/event_loop.h>
#include <tambour/loop/timer.h>
#include <tambour/net/connector.h>
#include <tambour/net/resolver.h>
#include <tambour/task/event.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

namespace tambour::detail::client {

class Race {
 public:
  /// The options and the step must exist as long as this object. `step` becomes
  /// ConnectStep::connect with the first attempt.
  Race(EventLoop& loop, std::stop_token stop, const ConnectOptions& options, ConnectStep& step);
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  // One of these, once.
  void use(const std::vector<Endpoint>& addresses);
  /// `alpn`: servers of HTTPS records that support none of these are not used; empty: all are.
  void look_up(Resolver& resolver, std::string host, std::uint16_t port,
               std::vector<std::string> alpn);

  [[nodiscard]] Task<ConnectResult> run();

 private:
  /// A server, and its addresses that are known so far.
  struct Alternative {
    ServiceTarget service;
    std::vector<Endpoint> addresses{};
    bool is_complete = false;  ///< No further addresses will become known.
  };
  struct Candidate {
    Endpoint to;
    const Alternative* of;
  };

  Task<> look_up_addresses(Resolver& resolver, Alternative& alternative);
  Task<> look_up_https(Resolver& resolver, std::string host, std::uint16_t port,
                       std::vector<std::string> alpn);
  Task<> look_up_srv(Resolver& resolver, std::string host, std::uint16_t port);
  Alternative& add(Resolver& resolver, ServiceTarget service);
  /// The records are known, or are not waited for any more.
  void use_services();
  /// Addresses have become known.
  void update();
  void collect();
  void add_candidates(const Alternative& alternative);
  [[nodiscard]] bool has_space() const noexcept {
    return tried_.size() + left_.size() < candidates_max_;
  }
  [[nodiscard]] bool may_begin() const noexcept;
  void begin();
  void start_next();
  void fail(std::exception_ptr thrown) noexcept;
  Task<> attempt(Candidate candidate);

  EventLoop& loop_;
  const ConnectOptions& options_;
  ConnectStep& step_;
  std::vector<std::unique_ptr<Alternative>> alternatives_;  ///< In the order of preference.
  bool has_services_ = true;               ///< False while SRV or HTTPS records are looked up.
  std::size_t candidates_max_ = SIZE_MAX;  ///< That are tried, in all.
  std::vector<Candidate> left_;
  std::vector<Endpoint> tried_;
  bool is_complete_ = false;  ///< No further addresses will become known.
  bool has_begun_ = false;
  TimePoint started_{};  ///< When the last attempt started.
  std::size_t attempts_ = 0;
  Error last_error_;
  bool has_failed_ = false;
  std::exception_ptr thrown_;
  std::optional<ConnectedStream> winner_;
  TaskEvent changed_;
  Timer begin_;
  Timer services_;
  Timer pace_;
  /// Last member, because its tasks use the others. Its destructor closes the attempts that lost.
  TaskScope tasks_;
};

}  // namespace tambour::detail::client
