// Calls on open files that do not wait for the disk.
#include "files/file_calls.h"

#include <cerrno>
#include <cstddef>

#include "backend/system.h"
#include "base/failure.h"
#include "loop/core.h"

namespace tambour::detail::files {

Result<struct stat> status_of(EventLoop& loop, const File& file) noexcept {
  struct stat status{};
  if (loop::core_of(loop).backend().system().fstat(file.fd(), &status) != 0)
    return base::failure(errno);
  return status;
}

bool is_cached(EventLoop& loop, const File& file, std::uint64_t offset,
               std::uint64_t size) noexcept {
  std::byte last{};
  backend::System& system = loop::core_of(loop).backend().system();
  return system.pread_cached(file.fd(), &last, 1, static_cast<off_t>(offset + size - 1)) == 1;
}

}  // namespace tambour::detail::files
