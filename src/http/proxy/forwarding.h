// One request on its way through a proxy.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/request.h>
#include <tambour/http/response.h>
#include <tambour/http/reverse_proxy.h>
#include <tambour/task/task.h>

#include "http/client/h1_exchange.h"
#include "http/proxy/state.h"
#include "http/proxy/watchdog.h"

namespace tambour::http::detail::proxy {

/// Ownership: of the handler's task, by ForwardingUse. Afterwards, the state keeps some for further
/// requests, with the memory of their fields.
class Forwarding final : private client::InterimSink {
 public:
  explicit Forwarding(State& state);
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;
  ~Forwarding() override = default;

  void begin(Request& request, Response& response) noexcept;
  [[nodiscard]] Task<> run();
  void end() noexcept;

 private:
  /// Makes the head for the servers. Returns false if the request was answered.
  [[nodiscard]] bool prepare();
  [[nodiscard]] bool is_answered_here();
  void write_fields();
  /// Sets what depends on the server.
  [[nodiscard]] Result<> direct();
  [[nodiscard]] const RequestHead& sent_head() const noexcept {
    return modified_ ? *modified_ : head_;
  }
  [[nodiscard]] client::OutgoingBody body();

  /// Waits for the servers of names that are being resolved for the first time. Returns false if
  /// the request was answered, because its time has passed.
  [[nodiscard]] Task<bool> wait_for_names();
  void enter(std::shared_ptr<Server> server);
  void leave() noexcept;
  /// Sends the request and receives the head of the response.
  [[nodiscard]] Task<Result<>> attempt();
  [[nodiscard]] Task<Result<client::Lease>> connect();
  /// Whether a server that has got the request may get it again.
  [[nodiscard]] bool is_repeatable() const noexcept;
  [[nodiscard]] bool was_stale(const Result<>& result) const noexcept;
  void count(const Result<>& result) noexcept;
  /// The server for another attempt, or null.
  [[nodiscard]] std::shared_ptr<Server> next_after(const Result<>& result);

  /// The client waits for the response of the server, and so does the time limit for it.
  [[nodiscard]] Task<> pass_interim(ResponseHead& head) override;
  [[nodiscard]] Task<> respond();
  void write_response_head();
  [[nodiscard]] Task<> pass_body();
  [[nodiscard]] Task<> tunnel();
  /// Answers a request that could not be passed on.
  void fail(const Error& error);
  void fail(Status status, const Error& error);

  State& state_;
  Request* request_ = nullptr;
  Response* response_ = nullptr;
  RequestHead head_;
  std::optional<RequestHead> modified_;  ///< By ReverseProxyOptions::modify_request.
  bool has_body_ = false;
  bool has_body_failed_ = false;  ///< The client has not sent it, or has sent what is no body.
  bool expects_continue_ = false;
  bool keeps_upgrade_ = false;
  bool is_sent_ = false;     ///< Bytes of the request may have reached the server.
  bool is_refused_ = false;  ///< No connection became free.
  bool was_kept_ = false;    ///< The last connection had served another request.
  std::shared_ptr<Server> server_;
  std::vector<std::shared_ptr<Server>> tried_;
  Watchdog watchdog_;
  std::optional<client::H1Exchange> exchange_;  ///< Destroyed before the server and the watchdog.
};

/// A Forwarding for one request.
class ForwardingUse {
 public:
  ForwardingUse(std::shared_ptr<State> state, Request& request, Response& response);
  ForwardingUse(const ForwardingUse&) = delete;
  ForwardingUse& operator=(const ForwardingUse&) = delete;
  ~ForwardingUse();

  [[nodiscard]] Task<> run() { return forwarding_->run(); }

 private:
  std::shared_ptr<State> state_;
  std::unique_ptr<Forwarding> forwarding_;
};

}  // namespace tambour::http::detail::proxy
