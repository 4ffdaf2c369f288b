// The subscription of a connection to a topic. The connection invokes its functions when it has
// room for more messages, and when it ends.
#pragma once

#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/namespaces.h>

namespace tambour::http::detail::websocket {

/// An entry in the list of a connection. All functions are invoked on the connection's thread.
class Subscriber : public tambour::detail::ListHook<Subscriber> {
 public:
  /// Identifies the topic of the subscriber.
  explicit Subscriber(const void* topic) noexcept : topic_(topic) {}
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  [[nodiscard]] const void* topic() const noexcept { return topic_; }

  /// The connection may accept messages again. It may be closed meanwhile.
  virtual void connection_has_room() noexcept = 0;
  /// No message can be sent any more: the closing handshake has begun, or the connection has ended.
  /// Must destroy the subscriber.
  virtual void connection_ends() noexcept = 0;

 protected:
  ~Subscriber() = default;

 private:
  const void* topic_;
};

}  // namespace tambour::http::detail::websocket
