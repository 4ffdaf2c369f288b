// MemoryFile: memfd_create(2) and mmap(2).
#include "files/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "backend/system.h"
#include "base/system_call.h"
#include "bytes/buffer_memory.h"
#include "loop/core.h"

// Linux 6.3; the headers of Debian 12 do not have it.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace tambour::detail::files {
namespace {

int create() noexcept {
  constexpr unsigned flags = MFD_CLOEXEC;
  const int fd = base::system_call(base::Call::file_open, ::memfd_create, "tambour-file",
                                   flags | MFD_NOEXEC_SEAL);
  if (fd >= 0 || errno != EINVAL) return fd;
  return base::system_call(base::Call::file_open, ::memfd_create, "tambour-file", flags);
}

}  // namespace

MemoryFile::~MemoryFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

bool MemoryFile::open(std::size_t size) noexcept {
  // Beyond this limit, fallocate(2) raises SIGXFSZ.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || size > limit.rlim_cur) return false;
  fd_.reset(create());
  if (!fd_.is_open()) return false;
  // Allocates the pages: a page that could not be allocated later would raise SIGBUS.
  const auto end = static_cast<off_t>(size);
  if (base::uninterrupted(base::Call::file_allocate, ::fallocate, fd_.get(), 0, off_t{0}, end) != 0)
    return false;
  if (base::planned_outcome(base::Call::mmap)) return false;
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (at == MAP_FAILED) return false;
  bytes_ = {static_cast<std::byte*>(at), size};
  return true;
}

std::shared_ptr<MemoryFile> MemoryFile::copy_of(EventLoop& loop, const Buffer& buffer) {
  if (&loop::core_of(loop).backend().system() != &backend::kernel()) return nullptr;
  std::shared_ptr<MemoryFile> file(new MemoryFile);
  if (!file->open(buffer.size())) return nullptr;
  buffer.copy_to(file->bytes_);
  return file;
}

Buffer MemoryFile::contents_of(const std::shared_ptr<MemoryFile>& file) {
  return BufferMemory::make_of_file(file->bytes_, file->fd_.get(), file);
}

}  // namespace tambour::detail::files
