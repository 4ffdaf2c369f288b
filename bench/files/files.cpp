#include "files/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "common/options.h"

namespace bench {
namespace {

constexpr const char* directory = "/var/tmp";  // On a disk; /tmp may be in memory.

std::uint64_t block_number(const char* block) {
  std::uint64_t number;
  std::memcpy(&number, block, sizeof number);
  return number;
}

}  // namespace

FilesOptions parse_files_options(int argc, char** argv) {
  FilesOptions options;
  CommandLine line("Measures random reads of 4 KiB.", options.iterations);
  line.add("--mebibytes", options.mebibytes, "size of the file", 1, 100'000);
  line.add("--depth", options.depth, "concurrent reads", 1, 1024);
  line.add("--reads", options.reads, "reads per iteration", 1, 1'000'000'000);
  line.add_flag("--direct", options.direct, "bypass the page cache with O_DIRECT");
  line.parse_or_exit(argc, argv);
  return options;
}

Reads::Reads(const FilesOptions& options)
    : options_(options), expected_(std::size_t(options.depth)) {
  fd_ = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd_ < 0) fail_errno(std::string("open with O_TMPFILE in ") + directory);
  std::vector<char> mebibyte(std::size_t(1) << 20);
  for (std::uint64_t block = 0; block < std::uint64_t(options.mebibytes) * 256; ++block) {
    std::memcpy(&mebibyte[block % 256 * size], &block, sizeof block);
    if (block % 256 == 255 &&
        write(fd_, mebibyte.data(), mebibyte.size()) != ssize_t(mebibyte.size()))
      fail_errno("write");
  }
  if (options.direct &&
      (fsync(fd_) != 0 || fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_DIRECT) != 0))
    fail_errno("O_DIRECT");
  // O_DIRECT requires aligned buffers.
  void* memory = mmap(nullptr, size * std::size_t(options.depth), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) fail_errno("mmap");
  memory_ = static_cast<char*>(memory);
}

Reads::~Reads() {
  munmap(memory_, size * std::size_t(options_.depth));
  close(fd_);
}

void Reads::start_round() { started_ = done_ = 0; }

off_t Reads::next(int slot) {
  if (started_ == options_.reads) return -1;
  ++started_;
  expected_[slot] = random_() % (std::uint64_t(options_.mebibytes) * 256);
  return off_t(expected_[slot] * size);
}

void Reads::done(int slot, std::int64_t got) {
  if (got != std::int64_t(size)) fail("a read returned " + std::to_string(got) + " bytes");
  if (block_number(buffer(slot)) != expected_[slot]) fail("a read returned the wrong block");
  ++done_;
}

}  // namespace bench
