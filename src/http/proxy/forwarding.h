// One request on its way through a proxy.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/request.h>
#include <tambour/http/response.h>
#include <tambour/http/reverse_proxy.h>
#include <tambour/task/task.h>

#include "http/client/h1_exchange.h"
#include "http/proxy/fields.h"
#include "http/proxy/state.h"
#include "http/proxy/watchdog.h"

namespace tambour::http::detail::proxy {

class Forwarding;

/// A Forwarding for one request.
class ForwardingUse {
 public:
  ForwardingUse(std::shared_ptr<State> state, Request& request, Response& response);
  ForwardingUse(ForwardingUse&&) noexcept = default;
  ForwardingUse& operator=(ForwardingUse&&) = delete;
  ~ForwardingUse();

  [[nodiscard]] Forwarding& forwarding() const noexcept { return *forwarding_; }

 private:
  std::shared_ptr<State> state_;
  std::unique_ptr<Forwarding> forwarding_;
};

/// Ownership: of the handler's task, by ForwardingUse. Afterwards, the state keeps some for further
/// requests, with the memory of their fields.
class Forwarding final : private client::InterimSink {
 public:
  explicit Forwarding(State& state);
  Forwarding(const Forwarding&) = delete;
  Forwarding& operator=(const Forwarding&) = delete;
  ~Forwarding() override = default;

  void begin(Request& request, Response& response) noexcept;
  /// Passes the request on. `use` is of this object.
  [[nodiscard]] Task<> run(ForwardingUse use);
  void end() noexcept;

 private:
  /// Makes the head for the servers. Returns false if the request was answered.
  [[nodiscard]] bool prepare();
  [[nodiscard]] bool is_answered_here();
  [[nodiscard]] ClientIdentity identify_client() const;
  void write_fields(const RequestTraits& traits, const ClientIdentity& client);
  /// Sets what depends on the server.
  [[nodiscard]] Result<> direct();
  [[nodiscard]] const RequestHead& sent_head() const noexcept {
    return modified_ ? *modified_ : head_;
  }
  [[nodiscard]] client::OutgoingBody body();

  /// Waits for the servers of names that are being resolved for the first time. Returns false if
  /// the request was answered, because its time has passed or its client has gone.
  [[nodiscard]] Task<bool> wait_for_names();
  /// Runs `work`, and asks it to stop when the client has gone.
  template <class T>
  [[nodiscard]] Task<T> while_client_stays(Task<T> work);
  void enter(std::shared_ptr<Server> server);
  void leave() noexcept;
  /// Before another attempt on the same server.
  void discard_attempt() noexcept;
  /// An unused connection, or an empty lease.
  [[nodiscard]] Result<client::Lease> take_idle();
  [[nodiscard]] Task<Result<client::Lease>> connect();
  void begin_exchange(client::Lease lease);
  /// Whether a server that has got the request may get it again.
  [[nodiscard]] bool is_repeatable() const noexcept;
  [[nodiscard]] bool was_stale(const Result<>& result) const noexcept;
  void count(const Result<>& result) noexcept;
  /// The server for another attempt, or null.
  [[nodiscard]] std::shared_ptr<Server> next_after(const Result<>& result);

  /// The client waits for the response of the server, and so does the time limit for it.
  [[nodiscard]] Task<> pass_interim(ResponseHead& head) override;
  void write_response_head();
  /// Sends a response whose body has arrived with its head. Returns false if more of the body has
  /// to be passed on, after what was appended to `piece`.
  [[nodiscard]] bool respond_at_once(Buffer& piece);
  [[nodiscard]] Task<> pass_body(Buffer piece);
  /// The body of the response has ended early.
  void truncate() noexcept;
  [[nodiscard]] Task<> tunnel();
  /// Answers a request that could not be passed on.
  void fail(const Error& error);
  void fail(Status status, const Error& error);

  State& state_;
  Request* request_ = nullptr;
  Response* response_ = nullptr;
  RequestHead head_;
  std::optional<RequestHead> modified_;  ///< By ReverseProxyOptions::modify_request.
  // Of the request, whose method is compared once.
  bool is_get_ = false;
  bool is_head_ = false;
  bool is_idempotent_ = false;
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

}  // namespace tambour::http::detail::proxy
