// The functions of Connection, which call those of ConnectionCore of the same name.
#include <utility>

#include <tambour/net/connection.h>

#include "net/connection/core.h"

namespace tambour {

using detail::net::ConnectionCore;

Connection& Connection::start(Stream stream, std::shared_ptr<const ConnectionCallbacks> callbacks) {
  return ConnectionCore::start(std::move(stream), nullptr, std::move(callbacks), nullptr);
}

Connection& Connection::start(SocketStream stream,
                              std::shared_ptr<const ConnectionCallbacks> callbacks) {
  return ConnectionCore::start(std::move(stream), std::move(callbacks), nullptr);
}

inline ConnectionCore& Connection::core() noexcept { return ConnectionCore::of(*this); }

inline const ConnectionCore& Connection::core() const noexcept { return ConnectionCore::of(*this); }

bool Connection::send(std::span<const std::byte> bytes) { return core().send(bytes); }

bool Connection::send(Buffer&& bytes) { return core().send(std::move(bytes)); }

ConnectionHandle Connection::handle() { return core().handle(); }

bool Connection::is_open() const noexcept { return core().is_open(); }

std::size_t Connection::unsent() const noexcept { return core().unsent(); }

void Connection::shutdown_write() noexcept { core().shutdown_write(); }

void Connection::close_after_write() noexcept { core().close_after_write(); }

void Connection::close() noexcept { core().close(); }

void Connection::pause_reading() noexcept { core().pause_reading(); }

void Connection::resume_reading() noexcept { core().resume_reading(); }

void Connection::set_idle_timeout(Duration time) { core().set_idle_timeout(time); }

void Connection::set_deadline(Duration time) { core().set_deadline(time); }

void Connection::move_to(EventLoop& to) { core().move_to(to); }

int Connection::fd() const noexcept { return core().fd(); }

Result<Endpoint> Connection::local_endpoint() const noexcept { return core().local_endpoint(); }

Result<Endpoint> Connection::peer_endpoint() const noexcept { return core().peer_endpoint(); }

const ProxyHeader* Connection::proxy_header() const noexcept { return core().proxy_header(); }

const tls::Session* Connection::tls() const noexcept { return core().tls(); }

std::any& Connection::context() noexcept { return core().context(); }

}  // namespace tambour
