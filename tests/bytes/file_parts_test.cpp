// Parts of files in buffers: where BufferMemory finds them after other changes of the buffer.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <tambour/bytes/buffer.h>

#include "bytes/buffer_memory.h"

namespace tambour::file_parts_test {
namespace {

using detail::BufferMemory;

constexpr int fd = 1000;  // Of no file: nothing is sent.

Buffer buffer_of_file(std::size_t size) {
  auto text = std::make_shared<const std::string>(size, 'f');
  const auto bytes = std::as_bytes(std::span(*text));
  return BufferMemory::make_of_file(bytes, fd, std::move(text));
}

TEST(FileParts, are_found_behind_other_bytes) {
  Buffer buffer("head");
  buffer.append(buffer_of_file(5000));
  buffer.append("end");
  const auto part = BufferMemory::find_file_part(buffer, 5000, 16);
  EXPECT_EQ(part.fd, fd);
  EXPECT_EQ(part.bytes_before, 4U);
  EXPECT_EQ(part.offset, 0U);
  EXPECT_EQ(part.size, 5000U);
  EXPECT_EQ(buffer.to_string(), "head" + std::string(5000, 'f') + "end");
}

TEST(FileParts, have_the_offset_of_what_was_not_consumed) {
  const Buffer file = buffer_of_file(5000);
  Buffer buffer = file.slice(1000, 3000);
  buffer.consume(500);
  const auto part = BufferMemory::find_file_part(buffer, 1, 16);
  EXPECT_EQ(part.fd, fd);
  EXPECT_EQ(part.bytes_before, 0U);
  EXPECT_EQ(part.offset, 1500U);
  EXPECT_EQ(part.size, 2500U);
}

TEST(FileParts, are_not_found_if_they_are_short_or_late) {
  Buffer buffer(std::string(2000, 'x'));
  buffer.append(buffer_of_file(3000));
  EXPECT_EQ(BufferMemory::find_file_part(buffer, 3001, 16).fd, -1);
  EXPECT_EQ(BufferMemory::find_file_part(buffer, 3000, 1).fd, -1);
  EXPECT_EQ(BufferMemory::find_file_part(buffer, 3000, 2).fd, fd);
  EXPECT_EQ(BufferMemory::find_file_part(Buffer(), 0, 16).fd, -1);
  EXPECT_TRUE(buffer_of_file(0).empty());
}

TEST(FileParts, of_other_owners_are_none) {
  const auto text = std::make_shared<const std::string>(5000, 's');
  Buffer buffer;
  buffer.append_shared(std::as_bytes(std::span(*text)), text);
  EXPECT_EQ(BufferMemory::find_file_part(buffer, 1, 16).fd, -1);
}

}  // namespace
}  // namespace tambour::file_parts_test
