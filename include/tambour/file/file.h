// Asynchronous file I/O for tasks.
//
// The kernel performs the operations on an io_uring, on every backend; if rings are forbidden,
// threads of WorkerPool::files() make the system calls; in a simulation, the files are those of the
// simulated host. Every operation specifies its offset, so any number of operations may run
// concurrently. A read of data in the page cache does not wait.
//
// While an operation is in progress, the kernel uses the caller's buffer. A task that is asked to
// stop therefore waits until the operation has ended, and destroying a waiting task makes its loop
// block until then. On a ring, reading into and writing from the caller's buffer allocates nothing.
#pragma once

#include <sys/types.h>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/file_transfer.h>
#include <tambour/detail/stop_hook.h>
#include <tambour/fs/status.h>
#include <tambour/task/task.h>

namespace tambour::detail::files {
struct Access;
class FileRequest;
class OpenFile;
}  // namespace tambour::detail::files

#pragma GCC visibility push(default)

namespace tambour {

class EventLoop;

/// The access mode of open(2). O_CLOEXEC is always set.
enum class FileMode : std::uint8_t {
  read,        ///< Read only.
  write,       ///< Write only.
  update,      ///< Read and write.
  create,      ///< Read and write; created if it does not exist.
  replace,     ///< Like `create`; truncated if it exists.
  create_new,  ///< Read and write; created, or EEXIST if it exists.
  append,      ///< Write only, with File::append(); created if it does not exist: O_APPEND.
};

/// Whether the kernel's page cache is used.
enum class FileCache : std::uint8_t {
  kernel,  ///< The page cache is used.
  /// Direct I/O between the disk and the program's memory: O_DIRECT, open(2). Buffer addresses,
  /// offsets and sizes must be multiples of the value that the file system requires (statx(2),
  /// STATX_DIOALIGN), usually 512 or 4096; otherwise operations fail with EINVAL. size() and
  /// truncate() are not affected.
  none,
};

namespace detail {

/// A file operation that a task awaits. It starts when it is awaited, and may be moved until then.
/// All its memory is allocated when it is created.
class FileWait : private StopHook {
 public:
  FileWait(FileWait&& other) noexcept
      : StopHook(&cancel), request_(std::exchange(other.request_, nullptr)) {
    check_not_awaited(other.awaiting_, "a function of File");
  }
  FileWait& operator=(FileWait&&) = delete;

  [[nodiscard]] static bool await_ready() noexcept { return false; }

  template <HasTaskContext Promise>
  bool await_suspend(std::coroutine_handle<Promise> awaiting,
                     std::source_location at = std::source_location::current()) {
    if (!begin(awaiting.promise().context(), awaiting)) return false;
    note_wait(awaiting, WaitNote(WaitKind::file), at);
    return true;
  }

 protected:
  explicit FileWait(files::FileRequest& request) noexcept : StopHook(&cancel), request_(&request) {}
  ~FileWait();

  [[nodiscard]] files::FileRequest& request() const noexcept { return *request_; }
  /// The result, or a negated errno value.
  [[nodiscard]] std::int64_t outcome() const noexcept;

 private:
  static void cancel(StopHook& hook) noexcept;
  bool begin(const TaskContext& context, std::coroutine_handle<> awaiting);

  files::FileRequest* request_;  ///< Null after a move.
  std::coroutine_handle<> awaiting_;
};

}  // namespace detail

/// An open file that supports offsets: a regular file, a block device, a device such as /dev/zero,
/// or a directory, which supports only sync(). For FIFOs and terminals, use Stream.
///
/// Thread: a file belongs to no loop. Each operation runs on the loop of the task that awaits it.
/// Lifetime: may be moved at any time, including during operations.
/// Time limits: `co_await timeout(1s, File::open(path))`.
/// Errors: an operation fails with ECANCELED if its task is asked to stop before the operation has
/// finished. If a thread performs the operation and WorkerPool::queued_max() requests are queued,
/// it fails with EAGAIN. All operations throw std::bad_alloc.
class File {
 public:
  File() = default;
  File(File&&) noexcept = default;
  File& operator=(File&&) noexcept = default;
  /// Closes the file after its last operation has finished.
  ~File() = default;

  class Open final : public detail::FileWait {
   public:
    Open(std::string path, FileMode mode, mode_t permissions, FileCache cache);
    [[nodiscard]] Result<File> await_resume() const;
  };
  /// Opens a file. `permissions` are those of a created file, less the umask. Opening a FIFO, a
  /// terminal or a socket fails without waiting. If the task is destroyed meanwhile, the file is
  /// closed again. Fails with the errors of openat(2), for example ENOENT, EACCES, EISDIR or
  /// EMFILE; with ESPIPE for a FIFO or a terminal; with ENXIO for a socket, or for writing to a
  /// FIFO without a reader; and with EINVAL if the path contains a null byte, or if the file system
  /// does not support FileCache::none.
  [[nodiscard]] static Open open(std::string path, FileMode mode = FileMode::read,
                                 mode_t permissions = 0666, FileCache cache = FileCache::kernel) {
    return {std::move(path), mode, permissions, cache};
  }

  /// False after close() and a move, and for a default-constructed file.
  [[nodiscard]] bool is_open() const noexcept { return file_ != nullptr; }
  /// The file descriptor, which the file still owns; -1 if the file is closed.
  [[nodiscard]] int fd() const noexcept;
  /// Closes the file after its last operation has finished. Errors of close(2) are not reported:
  /// await sync() first if the contents matter.
  void close() noexcept { file_.reset(); }

  class Read final : public detail::FileTransfer {
   public:
    Read(const File& file, std::span<std::byte> into, std::uint64_t from) noexcept
        : FileTransfer(detail::OperationKind::file_read, file.file_, into.data(), into.size(),
                       from) {}
    [[nodiscard]] Result<std::size_t> await_resume() const noexcept {
      const std::int64_t count = outcome();
      if (count < 0) [[unlikely]]
        return std::unexpected(system_error(static_cast<int>(count)));
      return static_cast<std::size_t>(count);
    }
  };
  /// Reads from `offset` until `into` is full or the file ends, and returns the number of bytes:
  /// pread(2). 0 means that the file ends at or before `offset`. Fails with EISDIR or EIO, and with
  /// EINVAL if `offset` exceeds the range of off_t.
  [[nodiscard]] Read read_at(std::span<std::byte> into, std::uint64_t offset) const {
    return {*this, into, offset};
  }

  class Write final : public detail::FileTransfer {
   public:
    Write(const File& file, std::span<const std::byte> from, std::uint64_t to) noexcept;
    /// Appends to a file that was opened with FileMode::append.
    Write(const File& file, std::span<const std::byte> from) noexcept;
    [[nodiscard]] Result<> await_resume() const noexcept;
  };
  /// Writes all bytes: pwrite(2). If it fails (ENOSPC, EDQUOT, EIO, ECANCELED), a part may have
  /// been written. Fails, without writing, with EINVAL if `offset` exceeds the range of off_t, and
  /// with EBADF if the file was opened with FileMode::append.
  [[nodiscard]] Write write_at(std::span<const std::byte> from, std::uint64_t offset) {
    return {*this, from, offset};
  }
  [[nodiscard]] Write write_at(std::string_view text, std::uint64_t offset) {
    return write_at(std::as_bytes(std::span(text)), offset);
  }

  class WriteBuffer final : public detail::FileWait {
   public:
    WriteBuffer(const File& file, Buffer& from, std::uint64_t offset, bool returns_rest);
    /// Appends to a file that was opened with FileMode::append.
    WriteBuffer(const File& file, Buffer& from, bool returns_rest);
    [[nodiscard]] Result<> await_resume() noexcept;

   private:
    Buffer* rest_;  ///< Gets the bytes that were not written; may be null.
  };
  /// Writes all bytes of a buffer. The operation owns the bytes while it is in progress, and `from`
  /// is empty. If it fails, the bytes that were not written are put back to the front of `from`:
  /// with `n` bytes less than before, `write_at(from, offset + n)` continues. `from` must exist
  /// until the operation has ended, or its task has been destroyed; the bytes are then lost. Up to
  /// 64 KiB are written by one system call, for which bytes in many small blocks are copied. With
  /// FileCache::none, use a span: the blocks of a buffer are not aligned.
  [[nodiscard]] WriteBuffer write_at(Buffer& from, std::uint64_t offset) {
    return {*this, from, offset, true};
  }
  /// Writes all bytes of a buffer. If it fails, the bytes that were not written are lost.
  [[nodiscard]] WriteBuffer write_at(Buffer&& from, std::uint64_t offset) {
    return {*this, from, offset, false};
  }

  /// Writes all bytes at the end of a file that was opened with FileMode::append; otherwise fails
  /// with EBADF. Up to 64 KiB are written by one system call, and other writers to the file, in
  /// this process or in others, write before or after them. Appends that are in progress at the
  /// same time are written in no particular order. Errors are those of write_at().
  [[nodiscard]] Write append(std::span<const std::byte> bytes) { return {*this, bytes}; }
  [[nodiscard]] Write append(std::string_view text) {
    return append(std::as_bytes(std::span(text)));
  }
  [[nodiscard]] WriteBuffer append(Buffer& bytes) { return {*this, bytes, true}; }
  [[nodiscard]] WriteBuffer append(Buffer&& bytes) { return {*this, bytes, false}; }

  class Done final : public detail::FileWait {
   public:
    explicit Done(detail::files::FileRequest& request) noexcept : detail::FileWait(request) {}
    [[nodiscard]] Result<> await_resume() const noexcept;
  };
  /// Waits until all written data is on the disk: fsync(2). An error (EIO, ENOSPC) is reported
  /// once, and means that data written since the last sync() may be lost.
  [[nodiscard]] Done sync();
  /// Truncates the file to `size` bytes, or extends it with zeros: ftruncate(2).
  [[nodiscard]] Done truncate(std::uint64_t size);

  /// Reserves space on the disk for `size` bytes from `offset`, so that writing them does not fail
  /// with ENOSPC; the file is extended with zeros if it ends before them: fallocate(2). Fails with
  /// ENOSPC, EFBIG, EBADF, or EOPNOTSUPP if the file system cannot; with EINVAL if `size` is 0.
  [[nodiscard]] Done allocate(std::uint64_t offset, std::uint64_t size);

  class StatusOf final : public detail::FileWait {
   public:
    explicit StatusOf(detail::files::FileRequest& request) noexcept : detail::FileWait(request) {}
    [[nodiscard]] Result<fs::Status> await_resume() const noexcept;
  };
  /// The type, size, times and other attributes of the file: statx(2).
  [[nodiscard]] StatusOf status() const;

  class Size final : public detail::FileWait {
   public:
    explicit Size(detail::files::FileRequest& request) noexcept : detail::FileWait(request) {}
    [[nodiscard]] Result<std::uint64_t> await_resume() const noexcept;
  };
  /// The size of the file in bytes: fstat(2).
  [[nodiscard]] Size size() const;

 private:
  friend struct detail::files::Access;
  explicit File(std::shared_ptr<detail::files::OpenFile> file) noexcept : file_(std::move(file)) {}

  std::shared_ptr<detail::files::OpenFile> file_;
};

}  // namespace tambour

#pragma GCC visibility pop
