// Files that tasks read and write without keeping their loop waiting.
//
// On io_uring the kernel does it; elsewhere, threads of WorkerPool::files() make the system calls;
// in a simulation, files are those of the simulated host. Every operation names its place in the
// file, so that any number of them can be under way at a time.
//
// The trap: while an operation is under way, the bytes that it was given are the kernel's. A task
// that is asked to stop waits until they are its own again, and one that is destroyed makes its
// loop wait for that.
#pragma once

#include <sys/types.h>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/result.h>
#include <tambour/task.h>

namespace tambour {

class EventLoop;
namespace loop {
class FileRequest;
class OpenFile;
}  // namespace loop

/// How a file is opened: open(2), always with O_CLOEXEC.
enum class FileMode : std::uint8_t {
  read,        ///< To be read.
  write,       ///< To be written.
  update,      ///< To be read and written.
  create,      ///< The same; made where it does not exist.
  replace,     ///< The same, and emptied where it does.
  create_new,  ///< To be read and written, and made; EEXIST where it exists.
};

/// Whether the kernel keeps what is read and written, for whoever wants it next.
enum class FileCache : std::uint8_t {
  kernel,  ///< As ever.
  /// The disk reads from and writes to the program's own memory: O_DIRECT, open(2). Bytes lie at,
  /// and offsets and sizes are, multiples of what the file system asks for (statx(2),
  /// STATX_DIOALIGN), which is 512 or 4096 nearly everywhere; else EINVAL. Size and truncation are
  /// as ever.
  none,
};

/// An operation on a file that a task awaits. It was made with all the memory it needs.
class FileWait {
 public:
  FileWait(const FileWait&) = delete;
  FileWait& operator=(const FileWait&) = delete;

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting) {
    const TaskContext& context = awaiting.promise().context();
    if (!begin(*context.loop, awaiting, context.stop)) return false;
    stop_.emplace(context.stop, Stop{*this});
    return true;
  }

 protected:
  explicit FileWait(loop::FileRequest& request) noexcept : request_(&request) {}
  ~FileWait();

  [[nodiscard]] loop::FileRequest& request() const noexcept { return *request_; }
  /// What came of it, or an errno value, negated.
  [[nodiscard]] std::int64_t outcome() const noexcept;

 private:
  struct Stop {
    FileWait& self;
    void operator()() const noexcept { self.request_stop(); }
  };
  bool begin(EventLoop& loop, std::coroutine_handle<> awaiting, const std::stop_token& stop);
  void request_stop() noexcept;

  loop::FileRequest* request_;
  std::optional<std::stop_callback<Stop>> stop_;
};

/// An open file that has positions: a regular file, a block device, a device such as /dev/zero, or
/// a directory, which can only be synced. FIFOs and terminals are for Stream. Belongs to no loop:
/// each operation is that of the loop whose task awaits it, and tells ECANCELED where that task was
/// asked to stop before it was done. All throw std::bad_alloc. Moves freely, also while it is used.
class File {
 public:
  File() = default;
  File(File&&) noexcept = default;
  File& operator=(File&&) noexcept = default;
  /// Closes it, once the last operation on it is done.
  ~File() = default;

  class Open final : public FileWait {
   public:
    Open(std::string path, FileMode mode, mode_t permissions, FileCache cache);
    [[nodiscard]] Result<File> await_resume() const;
  };
  /// openat(2): ENOENT, EACCES, EISDIR, EMFILE and what else it says. ESPIPE for a FIFO or a
  /// terminal, ENXIO for a socket or a FIFO to be written that has no reader; opening these never
  /// waits. EAGAIN if a thread does it and WorkerPool::queued_max() requests wait already; so with
  /// every operation. `permissions` of a file that
  /// is made, less the umask. EINVAL where the file system cannot do without a cache. Where the
  /// task is destroyed meanwhile, the file is closed again.
  [[nodiscard]] static Open open(std::string path, FileMode mode = FileMode::read,
                                 mode_t permissions = 0666, FileCache cache = FileCache::kernel) {
    return {std::move(path), mode, permissions, cache};
  }

  [[nodiscard]] bool is_open() const noexcept { return file_ != nullptr; }
  /// It stays the file's. -1 where that is closed.
  [[nodiscard]] int descriptor() const noexcept;
  void close() noexcept { file_.reset(); }

  class Read final : public FileWait {
   public:
    Read(const File& file, std::span<std::byte> into, std::uint64_t offset);
    [[nodiscard]] Result<std::size_t> await_resume() const noexcept;
  };
  /// Fills `into` from `offset` on: pread(2). Less only where the file ends before: 0, that it ends
  /// at `offset` or earlier. EISDIR, EIO; EINVAL for an offset that off_t does not hold.
  [[nodiscard]] Read read_at(std::span<std::byte> into, std::uint64_t offset) const {
    return {*this, into, offset};
  }

  class Write final : public FileWait {
   public:
    Write(const File& file, std::span<const std::byte> from, std::uint64_t offset);
    [[nodiscard]] Result<> await_resume() const noexcept;
  };
  /// Writes all of it: pwrite(2). Where it fails (ENOSPC, EDQUOT, EIO), or is told to stop, a part
  /// may have been written. EINVAL for an offset that off_t does not hold: nothing was.
  [[nodiscard]] Write write_at(std::span<const std::byte> from, std::uint64_t offset) {
    return {*this, from, offset};
  }
  [[nodiscard]] Write write_at(std::string_view text, std::uint64_t offset) {
    return write_at(std::as_bytes(std::span(text)), offset);
  }

  class Done final : public FileWait {
   public:
    explicit Done(loop::FileRequest& request) noexcept : FileWait(request) {}
    [[nodiscard]] Result<> await_resume() const noexcept;
  };
  /// Waits until what was written is on the disk: fsync(2). An error (EIO, ENOSPC) is told once,
  /// and means that what was written since the last sync() may be lost.
  [[nodiscard]] Done sync();
  /// Cuts the file to `size` bytes, or fills it up with zeros: ftruncate(2).
  [[nodiscard]] Done truncate(std::uint64_t size);

  class Size final : public FileWait {
   public:
    explicit Size(loop::FileRequest& request) noexcept : FileWait(request) {}
    [[nodiscard]] Result<std::uint64_t> await_resume() const noexcept;
  };
  /// How many bytes it has: fstat(2).
  [[nodiscard]] Size size() const;

 private:
  explicit File(std::shared_ptr<loop::OpenFile> file) noexcept : file_(std::move(file)) {}

  std::shared_ptr<loop::OpenFile> file_;
};

}  // namespace tambour
