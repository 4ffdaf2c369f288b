// UDP with callbacks: one receive operation that restarts after each callback.
#include <cerrno>
#include <memory>
#include <utility>

#include <tambour/udp/socket.h>

#include "base/failure.h"
#include "loop/core.h"

namespace tambour {

/// Registers as the socket's reader, so that it is notified when the socket is moved or closed, or
/// when receiving must stop. Owned by the loop, because its own callback may destroy the socket.
class UdpSocket::Serving final : private detail::IoWait, private detail::LoopOwned {
 public:
  static Result<> start(UdpSocket& socket, UdpCallbacks callbacks, DatagramBatch batch) {
    auto* const self = new Serving(socket, std::move(callbacks), std::move(batch));
    self->core_.owned().push_back(static_cast<detail::LoopOwned&>(*self));
    // Receiving always waits first; an error of watching the descriptor is reported later.
    if (!self->try_now_or_wait()) {
      self->set_created_at(self->callbacks_.created_at);
      return {};
    }
    const std::int32_t error = self->outcome;
    self->end();
    return detail::base::failure(error);
  }

 private:
  Serving(UdpSocket& socket, UdpCallbacks callbacks, DatagramBatch batch)
      : detail::IoWait(socket, Events::read, detail::FirstCall::when_ready),
        core_(detail::loop::core_of(socket.loop())),
        callbacks_(std::move(callbacks)),
        batch_(std::move(batch)) {}

  [[nodiscard]] bool step(detail::loop::Core& core) noexcept override {
    return finish(receive_into(batch_, core.backend().system(), fd()));
  }

  void detached() noexcept override {
    if (running_) return;
    leave();  // Datagrams that arrive from now on stay in the socket.
    end();
  }

  void completed() override {
    running_ = true;
    // If the descriptor is not a socket or cannot be watched, restarting would fail again and
    // again.
    const bool is_over = cannot_be_watched() || outcome == -EBADF || outcome == -ENOTSOCK;
    // Also runs if a callback throws.
    const struct Rest {
      Serving& self;
      bool is_over;
      ~Rest() {
        self.running_ = false;
        if (is_over || self.handle() == nullptr) {
          self.leave();
          self.end();
        } else {
          self.wait_again();
        }
      }
    } rest{*this, is_over};
    auto& udp = static_cast<UdpSocket&>(*handle());
    if (outcome < 0) {
      if (callbacks_.on_error) callbacks_.on_error(udp, system_error(outcome));
      return;
    }
    batch_.received(static_cast<std::size_t>(outcome), udp.gro_);
    if (callbacks_.on_datagrams) callbacks_.on_datagrams(udp, batch_);
  }

  void end() noexcept {
    static_cast<detail::LoopOwned*>(this)->unlink();
    core_.defer_delete(this);
  }

  detail::loop::Core& core_;
  UdpCallbacks callbacks_;
  DatagramBatch batch_;
  bool running_ = false;
};

Result<> UdpSocket::serve(UdpCallbacks callbacks, std::size_t datagrams, std::size_t bytes_each) {
  if (!is_open()) return detail::base::failure(EBADF);
  DatagramBatch batch(datagrams, bytes_each);
  if (!fits(batch)) return detail::base::failure(EINVAL);
  return Serving::start(*this, std::move(callbacks), std::move(batch));
}

}  // namespace tambour
