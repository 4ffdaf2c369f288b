// StreamServerBase: the public server of one loop, and the checks of its use.
#include <tambour/net/stream_server.h>

#include <cerrno>
#include <utility>

#include <tambour/loop/event_loop.h>

#include "base/check.h"
#include "base/failure.h"
#include "loop/core.h"
#include "server/acceptor.h"
#include "server/error_reporting.h"

namespace tambour {
namespace {

[[noreturn]] void misused(const detail::server::Acceptor& acceptor, const char* function,
                          const char* mode, const char* fix) noexcept {
  const Endpoint& at = acceptor.listener().endpoint();
  const char* const name = at.is_ip() ? "TcpServer" : "UnixServer";
  detail::base::fail_check("%s::%s%s() was called %s on the server listening at %s; %s", name,
                           function != nullptr ? "" : "~", function != nullptr ? function : name,
                           mode, at.to_string().c_str(), fix);
}

/// Aborts with a message if the server was moved from.
detail::server::Acceptor& existing(detail::server::Acceptor* acceptor,
                                   const char* function) noexcept {
  if (acceptor == nullptr) [[unlikely]]
    detail::base::fail_check("StreamServer::%s() was called on a server that was moved from",
                             function);
  return *acceptor;
}

/// Aborts with a message if the loop has been destroyed, or on another thread than the loop's. A
/// null `function` means the destructor.
void check_loop(const detail::server::Acceptor& acceptor, const char* function) noexcept {
  if (acceptor.core().closed()) [[unlikely]]
    misused(acceptor, function, "after its event loop was destroyed",
            "destroy the server before its EventLoop");
  if (!acceptor.core().in_group_thread()) [[unlikely]]
    misused(acceptor, function, "on another thread than that of its event loop",
            "post() a callback that calls it to the loop");
}

/// existing() and check_loop().
detail::server::Acceptor& usable(detail::server::Acceptor* acceptor,
                                 const char* function) noexcept {
  check_loop(existing(acceptor, function), function);
  return *acceptor;
}

detail::server::Acceptor& usable_and_idle(detail::server::Acceptor* acceptor) noexcept {
  if (usable(acceptor, "serve").serves()) [[unlikely]]
    misused(*acceptor, "serve", "twice", "create one server for each handler or set of callbacks");
  return *acceptor;
}

}  // namespace

void StreamServerBase::Destroy::operator()(detail::server::Acceptor* acceptor) const noexcept {
  check_loop(*acceptor, nullptr);
  detail::server::Acceptor::destroy(acceptor);
}

Result<StreamServerBase> StreamServerBase::open(EventLoop& loop, const Endpoint& at,
                                                const ListenOptions& options,
                                                const std::source_location& function) {
  auto server = create(loop, options, function);
  if (!server) return server;
  if (auto opened = server->acceptor_->listen(at, options.reuse_port); !opened)
    return std::unexpected(opened.error());
  return server;
}

Result<StreamServerBase> StreamServerBase::open(EventLoop& loop, UniqueFd listener,
                                                bool (*supports)(const Endpoint&),
                                                const ListenOptions& options,
                                                const std::source_location& function) {
  auto server = create(loop, options, function);
  if (!server) return server;
  if (auto adopted = server->acceptor_->adopt(std::move(listener), supports); !adopted)
    return std::unexpected(adopted.error());
  return server;
}

/// `function` is the public function that a failed thread check names.
Result<StreamServerBase> StreamServerBase::create(EventLoop& loop, const ListenOptions& options,
                                                  const std::source_location& function) {
  detail::loop::core_of(loop).check_thread(function);
  if (options.placement) return detail::base::failure(EINVAL);
  return StreamServerBase(AcceptorPointer(
      new detail::server::Acceptor(loop, std::make_shared<const ListenOptions>(options), nullptr)));
}

StreamServerBase::StreamServerBase(AcceptorPointer acceptor) noexcept
    : acceptor_(std::move(acceptor)) {}
StreamServerBase::StreamServerBase(StreamServerBase&&) noexcept = default;
StreamServerBase& StreamServerBase::operator=(StreamServerBase&&) noexcept = default;
StreamServerBase::~StreamServerBase() = default;

const Endpoint& StreamServerBase::endpoint() const noexcept {
  return existing(acceptor_.get(), "endpoint").listener().endpoint();
}
int StreamServerBase::fd() const noexcept {
  return existing(acceptor_.get(), "descriptor").listener().fd();
}
const tls::ServerContext& StreamServerBase::tls() const noexcept {
  return existing(acceptor_.get(), "tls").options()->tls;
}
void StreamServerBase::keep_path() noexcept { usable(acceptor_.get(), "keep_path").keep_path(); }
void StreamServerBase::stop() noexcept { usable(acceptor_.get(), "stop").stop(); }
Task<> StreamServerBase::shut_down(Duration grace) {
  return usable(acceptor_.get(), "shut_down")
      .shut_down(grace, [](const detail::server::Acceptor& acceptor) {
        misused(acceptor, "shut_down", "by one of its own handlers, for which it waits,",
                "call stop(), or spawn the shut_down() on the loop");
      });
}
std::stop_token StreamServerBase::shutdown_token() const noexcept {
  return usable(acceptor_.get(), "shutdown_token").shutdown_token();
}
void StreamServerBase::for_each_connection(Callback<void(Connection&)> function) {
  usable(acceptor_.get(), "for_each_connection").for_each_connection(function);
}
std::size_t StreamServerBase::connections() const noexcept {
  return existing(acceptor_.get(), "connections").connections();
}
std::uint64_t StreamServerBase::accepted() const noexcept {
  return existing(acceptor_.get(), "accepted").accepted();
}
std::uint64_t StreamServerBase::handler_exceptions() const noexcept {
  return existing(acceptor_.get(), "handler_exceptions").reporter()->count();
}
std::uint64_t StreamServerBase::accept_pauses() const noexcept {
  return existing(acceptor_.get(), "accept_pauses").reporter()->pauses();
}
std::size_t StreamServerBase::connections_max() const noexcept {
  return existing(acceptor_.get(), "connections_max").connections_max();
}
const std::shared_ptr<detail::server::ErrorReporter>& StreamServerBase::reporter() const noexcept {
  return existing(acceptor_.get(), "serve").reporter();
}
Task<Result<SocketStream>> StreamServerBase::accept_stream() {
  detail::server::Acceptor& acceptor = usable(acceptor_.get(), "accept");
  if (acceptor.serves()) [[unlikely]]
    misused(acceptor, "accept", "after serve()",
            "a server either serves its streams or is accepted from");
  return acceptor.accept_stream();
}

void StreamServerBase::serve(ConnectionCallbacks callbacks, std::source_location at) {
  callbacks.created_at = at;
  detail::server::Acceptor& acceptor = usable_and_idle(acceptor_.get());
  acceptor.serve(detail::server::share_callbacks(std::move(callbacks), acceptor.reporter()));
  acceptor.accept(at);
}

void StreamServerBase::serve_with(std::function<Task<>(SocketStream)> handler,
                                  const std::source_location& created_at,
                                  detail::HandshakeCheck check) {
  detail::server::Acceptor& acceptor = usable_and_idle(acceptor_.get());
  acceptor.serve(std::move(handler), created_at, check);
  acceptor.accept(created_at);
}

}  // namespace tambour
