// What runs when the server of a connection begins to shut down, for objects that are too many for
// a std::stop_callback each.
#pragma once

#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/namespaces.h>

namespace tambour::http {

/// Leaves its list when it is destroyed.
class ShutdownHook : private tambour::detail::ListHook<ShutdownHook> {
 public:
  ShutdownHook() = default;
  ShutdownHook(const ShutdownHook&) = delete;
  ShutdownHook& operator=(const ShutdownHook&) = delete;

  void ignore_shutdown() noexcept { unlink(); }

 protected:
  ~ShutdownHook() = default;

 private:
  friend class ShutdownHooks;
  friend class tambour::detail::ListHook<ShutdownHook>;
  friend class tambour::detail::IntrusiveList<ShutdownHook>;

  /// The server begins to shut down. Invoked once.
  virtual void begin_shutdown() noexcept = 0;
};

/// The hooks of a server on one loop. Thread: that of the loop.
class ShutdownHooks {
 public:
  void add(ShutdownHook& hook) noexcept { hooks_.push_back(hook); }
  void run() noexcept {
    while (ShutdownHook* const hook = hooks_.front()) {
      hook->unlink();
      hook->begin_shutdown();
    }
  }

 private:
  tambour::detail::IntrusiveList<ShutdownHook> hooks_;
};

}  // namespace tambour::http
