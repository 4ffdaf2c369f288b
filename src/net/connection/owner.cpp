// ConnectionOwner and ConnectionObserver.
#include "net/connection/owner.h"

#include <memory>
#include <utility>

#include "net/connection/parts.h"

namespace tambour::detail::net {

void ConnectionOwner::start(SocketStream&& stream,
                            std::shared_ptr<const ConnectionCallbacks> callbacks) {
  ConnectionCore::start(std::move(stream), std::move(callbacks), this);
}

Connection* ConnectionOwner::front() const noexcept {
  auto* const owned = connections_.front();
  return owned != nullptr ? static_cast<ConnectionCore*>(owned) : nullptr;
}

Connection* ConnectionOwner::after(Connection& connection) const noexcept {
  auto* const owned = connections_.after(ConnectionCore::of(connection));
  return owned != nullptr ? static_cast<ConnectionCore*>(owned) : nullptr;
}

void ConnectionOwner::add(ConnectionCore& connection) noexcept {
  connections_.push_back(static_cast<detail::LoopOwned&>(connection));
  ++size_;
}

void ConnectionOwner::remove(ConnectionCore& connection) noexcept {
  static_cast<detail::LoopOwned&>(connection).unlink();
  --size_;
  connection_removed();
}

void ConnectionOwner::close_all() noexcept {
  closing_ = true;
  for (auto* owned = connections_.front(); owned != nullptr; owned = connections_.after(*owned))
    static_cast<ConnectionCore&>(*owned).close();
}

void ConnectionOwner::begin_drain() noexcept {
  drains_ = true;
  for (auto* owned = connections_.front(); owned != nullptr; owned = connections_.after(*owned))
    static_cast<ConnectionCore&>(*owned).arm_deadlines();
}

void ConnectionOwner::drop_all() noexcept {
  while (auto* const owned = connections_.front()) {
    auto& connection = static_cast<ConnectionCore&>(*owned);
    connection.end(0);
    static_cast<detail::ReadyNode&>(connection).unlink();
    owned->unlink();
    --size_;
    connection.owner_ = nullptr;
    connection.leave();
  }
}

ConnectionObserver* ConnectionObserver::find(const Connection& connection,
                                             const void* key) noexcept {
  const ConnectionCore& core = ConnectionCore::of(connection);
  core.check_thread("find");
  if (core.extras_ == nullptr) return nullptr;
  const auto& observers = core.extras_->observers;
  ConnectionObserver* observer = observers.front();
  while (observer != nullptr && observer->key_ != key) observer = observers.after(*observer);
  return observer;
}

void ConnectionObserver::close(Connection& connection, int error) noexcept {
  ConnectionCore::of(connection).end_at_limit(error);
}

void ConnectionObserver::observe(Connection& connection) {
  ConnectionCore::of(connection).extras().observers.push_back(*this);
}

}  // namespace tambour::detail::net
