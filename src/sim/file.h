// An open file of a simulated host, and the watches on it.
//
// Functions return what the system call of the same name returns, but a negated errno value instead
// of setting errno. Readiness works as in epoll(7): a file reports that its state has changed, and
// its watchers then query whether it is ready. Level and edge triggering therefore behave as in the
// kernel.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

#include <tambour/detail/namespaces.h>
#include <tambour/loop/readiness.h>

#include "backend/fd_records.h"
#include "sim/sockets/address.h"
#include "sim/sockets/byte_queue.h"

namespace tambour::sim::detail {

class File;
class DirectoryFile;
class RegularFile;
class Socket;
struct Node;

/// POLLHUP.
inline constexpr Events hang_up = Events(0x010);

/// A loop's watch on the file of one descriptor: an entry of its interest list.
struct Watch {
  int fd = -1;
  File* file = nullptr;
  backend::Interest interest{};
  bool queued = false;  ///< The loop checks it in its next poll().
};

class Watcher {
 public:
  virtual void file_changed(Watch& watch) noexcept = 0;

 protected:
  ~Watcher() = default;
};

/// The data of a read or write, and the address of the peer.
struct Message {
  Buffers buffers;
  int flags = 0;
  const Address* to = nullptr;  ///< Sending: the destination, or null if the caller passed none.
  Address from{};               ///< Receiving: the sender; AF_UNSPEC if unknown.
  int flags_out = 0;
};

class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File() = default;

  /// The current events, as poll(2) reports them.
  [[nodiscard]] virtual Events readiness() const noexcept = 0;
  virtual ssize_t receive(Message&) { return -EBADF; }
  virtual ssize_t send(Message&) { return -EBADF; }
  /// Called when the last descriptor is closed.
  virtual void close() = 0;
  virtual Socket* as_socket() noexcept { return nullptr; }
  virtual RegularFile* as_regular() noexcept { return nullptr; }
  virtual DirectoryFile* as_directory() noexcept { return nullptr; }
  /// The file in the FileTree, or null.
  [[nodiscard]] virtual const std::shared_ptr<Node>* node() const noexcept { return nullptr; }

  void changed() noexcept;

  void attach(Watcher& watcher, Watch& watch);
  void detach(Watch& watch) noexcept;

  void add_descriptor() noexcept { ++descriptors_; }
  /// Returns true if it was the last descriptor.
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
  /// Returns 0 if accept() would return a connection, or the negated errno value if not.
  virtual int acceptable() const noexcept { return -EOPNOTSUPP; }
  virtual std::shared_ptr<Socket> accept() { return nullptr; }
  virtual int shutdown(int mode) = 0;
  virtual const Address* peer() const noexcept = 0;
  virtual bool listening() const noexcept { return false; }
  [[nodiscard]] virtual std::size_t unacknowledged() const noexcept { return 0; }
  virtual void set_linger_reset(bool) noexcept {}
  virtual void reset() {}
  [[nodiscard]] virtual std::size_t buffer_bytes(bool sending) const noexcept = 0;
  virtual void set_buffer_bytes(bool sending, std::size_t bytes) noexcept = 0;

  /// Returns SO_ERROR and clears it.
  int take_error() noexcept { return std::exchange(error_, 0); }
  /// Sets the error that the next call reports.
  void leave_error(int error) noexcept { error_ = error; }

 protected:
  int family_;
  int type_;
  int error_ = 0;  ///< An errno value.
  Address local_;
};

}  // namespace tambour::sim::detail
