// What a virtual descriptor stands for: an open file, and who watches it.
//
// Operations return what the system call of their name does, but an errno value negated where that
// sets errno. Readiness works as epoll(7) does: a file says that something about it has changed,
// and whoever watches it asks whether it is ready; so levels and edges are those of the kernel.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

#include <tambour/events.h>

#include "backend/fd_records.h"
#include "backend/sim/address.h"
#include "backend/sim/byte_queue.h"

namespace tambour::backend::sim {

class File;
class RegularFile;
class Socket;

/// POLLHUP.
inline constexpr Events hang_up = Events(0x010);

/// One loop watches one file under one number: an entry of its interest list.
struct Watch {
  int fd = -1;
  File* file = nullptr;
  Interest interest{};
  bool queued = false;  ///< To be asked at the loop's next look.
};

class Watcher {
 public:
  virtual void file_changed(Watch& watch) noexcept = 0;

 protected:
  ~Watcher() = default;
};

/// What is read or written, and with it, of whom.
struct Message {
  Buffers buffers;
  int flags = 0;
  const Address* to = nullptr;  ///< Sending: where the caller names somebody.
  Address from{};               ///< Receiving: AF_UNSPEC where it is from nobody in particular.
  int flags_out = 0;
};

class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File() = default;

  /// As poll(2) says it.
  [[nodiscard]] virtual Events readiness() const noexcept = 0;
  virtual ssize_t receive(Message&) { return -EBADF; }
  virtual ssize_t send(Message&) { return -EBADF; }
  /// The last descriptor is gone.
  virtual void close() = 0;
  virtual Socket* as_socket() noexcept { return nullptr; }
  virtual RegularFile* as_regular() noexcept { return nullptr; }

  void changed() noexcept;

  void attach(Watcher& watcher, Watch& watch);
  void detach(Watch& watch) noexcept;

  void add_descriptor() noexcept { ++descriptors_; }
  /// True where that was the last.
  bool drop_descriptor() noexcept;

 private:
  struct Entry {
    Watcher* watcher;
    Watch* watch;
  };
  std::vector<Entry> watches_;
  int descriptors_ = 0;
};

using FilePointer = std::shared_ptr<File>;

class Socket : public File {
 public:
  Socket(int family, int type) noexcept : family_(family), type_(type) {}

  Socket* as_socket() noexcept override { return this; }
  [[nodiscard]] int family() const noexcept { return family_; }
  [[nodiscard]] int type() const noexcept { return type_; }
  [[nodiscard]] const Address& local() const noexcept { return local_; }

  virtual int bind(const Address& address) = 0;
  virtual int connect(const Address& address) = 0;
  virtual int listen(int) { return -EOPNOTSUPP; }
  /// Takes nothing yet: 0, or why there is nothing to take.
  virtual int acceptable() const noexcept { return -EOPNOTSUPP; }
  virtual std::shared_ptr<Socket> accept() { return nullptr; }
  virtual int shutdown(int how) = 0;
  virtual const Address* peer() const noexcept = 0;
  virtual bool listening() const noexcept { return false; }
  virtual void set_linger_reset(bool) noexcept {}
  virtual void reset() {}
  [[nodiscard]] virtual std::size_t buffer_bytes(bool sending) const noexcept = 0;
  virtual void set_buffer_bytes(bool sending, std::size_t bytes) noexcept = 0;

  /// SO_ERROR: told once.
  int take_error() noexcept { return std::exchange(error_, 0); }
  /// To be told by whatever comes next.
  void leave_error(int error) noexcept { error_ = error; }

 protected:
  int family_;
  int type_;
  int error_ = 0;  ///< An errno value.
  Address local_;
};

}  // namespace tambour::backend::sim
