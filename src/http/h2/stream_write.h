// A write that no task awaits.
#pragma once

#include <source_location>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/net/io_handle.h>
#include <tambour/net/stream.h>

#include "net/outcome.h"

namespace tambour::http {

/// Like Stream::write(), without the frame of a coroutine: most writes of a connection complete at
/// once. Destroying it ends the write.
class StreamWrite : private detail::IoWait {
 public:
  /// Writes all of `from`. Both must outlive the write.
  StreamWrite(Stream& stream, Buffer& from) noexcept
      : IoWait(stream, Events::write, detail::FirstCall::within_budget),
        stream_(stream),
        from_(from) {}

  /// Returns true if the write has ended, with result(). Otherwise ended() will be called.
  [[nodiscard]] bool start() noexcept {
    if (try_now_or_wait()) return true;
    set_created_at(std::source_location::current());
    return false;
  }
  [[nodiscard]] Result<> result() const noexcept { return detail::net::result_of(outcome); }

 protected:
  ~StreamWrite() override = default;

  /// The write has ended. It may be destroyed.
  virtual void ended() noexcept = 0;

 private:
  [[nodiscard]] bool step(detail::loop::Core& core) noexcept final;
  void completed() final {
    leave();
    ended();
  }

  Stream& stream_;
  Buffer& from_;
};

}  // namespace tambour::http
