// Copies a file, with four blocks in flight at a time:
//
//   build/examples/copy_file from to
//
// Without arguments, it copies its own executable and compares the copy.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <tambour/tambour.h>

using namespace tambour;

struct Copy {
  File from, to;
  std::uint64_t next = 0;
  Error error{};
};

Task<> copy_blocks(Copy& copy) {
  std::vector<std::byte> block(std::size_t{64} * 1024);
  while (!copy.error) {
    const std::uint64_t at = copy.next;
    copy.next += block.size();
    const auto got = co_await copy.from.read_at(block, at);
    if (!got) copy.error = got.error();
    if (!got || *got == 0) co_return;
    const auto written = co_await copy.to.write_at(std::span(block).first(*got), at);
    if (!written) copy.error = written.error();
  }
}

Task<Error> copy_file(std::string from, std::string to) {
  auto source = co_await File::open(from);
  if (!source) co_return source.error();
  auto target = co_await File::open(to, FileMode::replace);
  if (!target) co_return target.error();
  Copy copy{std::move(*source), std::move(*target)};
  co_await when_all(copy_blocks(copy), copy_blocks(copy), copy_blocks(copy), copy_blocks(copy));
  if (copy.error) co_return copy.error;
  const auto synced = co_await copy.to.sync();
  co_return synced ? Error() : synced.error();
}

Task<Result<std::vector<std::byte>>> read_all(std::string path) {
  auto file = co_await File::open(path);
  if (!file) co_return std::unexpected(file.error());
  const auto size = co_await file->size();
  if (!size) co_return std::unexpected(size.error());
  std::vector<std::byte> bytes(*size);
  const auto got = co_await file->read_at(bytes, 0);
  if (!got) co_return std::unexpected(got.error());
  co_return bytes;
}

int main(int argc, char** argv) {
  std::string name = "/tmp/tambour-copy-XXXXXX";
  const bool is_demo = argc < 3;
  if (is_demo && ::mkstemp(name.data()) < 0) return 1;
  const std::string from = is_demo ? argv[0] : argv[1];
  const std::string to = is_demo ? name : argv[2];
  EventLoop loop;
  int status = 1;
  spawn(loop, [](std::string source, std::string target, int& result) -> Task<> {
    if (const Error error = co_await copy_file(source, target)) {
      std::fprintf(stderr, "%s\n", error.message().c_str());
      co_return;
    }
    const auto [one, other] = co_await when_all(read_all(source), read_all(target));
    if (!one || one != other) co_return;
    std::printf("copied %zu bytes\n", one->size());
    result = 0;
  }(from, to, status));
  loop.run();
  if (is_demo) std::remove(name.c_str());
  return status;
}
