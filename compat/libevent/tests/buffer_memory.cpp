// How much memory short pieces make an evbuffer hold, counted by the functions that the library
// allocates with.
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include <event2/buffer.h>
#include <event2/event.h>
#include <gtest/gtest.h>

namespace {

std::size_t live_bytes = 0;

void* counted(void* memory) noexcept {
  if (memory != nullptr) live_bytes += ::malloc_usable_size(memory);
  return memory;
}
void* allocate(std::size_t size) { return counted(std::malloc(size)); }
void release(void* memory) {
  if (memory != nullptr) live_bytes -= ::malloc_usable_size(memory);
  std::free(memory);
}
void* allocate_again(void* memory, std::size_t size) {
  if (memory != nullptr) live_bytes -= ::malloc_usable_size(memory);
  return counted(std::realloc(memory, size));
}

struct Free {
  void operator()(evbuffer* buffer) const noexcept { evbuffer_free(buffer); }
};
using Buffer = std::unique_ptr<evbuffer, Free>;

constexpr std::size_t total = std::size_t{1} << 18;
/// For each byte, and for the header of the buffer and its first chain.
constexpr std::size_t factor = 20;
constexpr std::size_t constant = 10'000;

class BufferMemory : public testing::TestWithParam<std::size_t> {
 protected:
  static void SetUpTestSuite() { event_set_mem_functions(allocate, allocate_again, release); }

  /// Expects that a buffer to which `add(buffer, text)` adds the text holds little more than its
  /// bytes, and that these are those of all texts.
  void expect_memory(const std::function<void(evbuffer*, const std::string&)>& add) {
    const std::size_t before = live_bytes;
    const Buffer all(evbuffer_new());
    std::size_t added = 0;
    for (char c = 'a'; added < total; c = c == 'z' ? 'a' : char(c + 1)) {
      add(all.get(), std::string(GetParam(), c));
      added += GetParam();
    }
    EXPECT_EQ(evbuffer_get_length(all.get()), added);
    EXPECT_LE(live_bytes - before, factor * added + constant);
  }
};

INSTANTIATE_TEST_SUITE_P(Every, BufferMemory, testing::Values(1, 2, 100, 1000, 1025),
                         [](const auto& size) { return std::to_string(size.param); });

TEST_P(BufferMemory, of_added_bytes) {
  expect_memory([](evbuffer* all, const std::string& text) {
    ASSERT_EQ(evbuffer_add(all, text.data(), text.size()), 0);
  });
}

TEST_P(BufferMemory, of_prepended_bytes) {
  expect_memory([](evbuffer* all, const std::string& text) {
    ASSERT_EQ(evbuffer_prepend(all, text.data(), text.size()), 0);
  });
}

TEST_P(BufferMemory, of_added_buffers) {
  expect_memory([](evbuffer* all, const std::string& text) {
    const Buffer piece(evbuffer_new());
    evbuffer_add(piece.get(), text.data(), text.size());
    ASSERT_EQ(evbuffer_add_buffer(all, piece.get()), 0);
    ASSERT_EQ(evbuffer_get_length(piece.get()), 0U);
  });
}

TEST_P(BufferMemory, of_prepended_buffers) {
  expect_memory([](evbuffer* all, const std::string& text) {
    const Buffer piece(evbuffer_new());
    evbuffer_add(piece.get(), text.data(), text.size());
    ASSERT_EQ(evbuffer_prepend_buffer(all, piece.get()), 0);
    ASSERT_EQ(evbuffer_get_length(piece.get()), 0U);
  });
}

/// As a program that collects the input of a bufferevent.
TEST_P(BufferMemory, of_moved_reads) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Buffer input(evbuffer_new());
  expect_memory([&](evbuffer* all, const std::string& text) {
    ASSERT_EQ(::send(ends[0], text.data(), text.size(), 0), ssize_t(text.size()));
    ASSERT_EQ(evbuffer_read(input.get(), ends[1], 16384), int(text.size()));
    ASSERT_EQ(evbuffer_add_buffer(all, input.get()), 0);
  });
  ::close(ends[0]);
  ::close(ends[1]);
}

/// As a program that takes messages from the input and keeps them.
TEST_P(BufferMemory, of_pieces_of_large_reads) {
  const Buffer input(evbuffer_new());
  expect_memory([&](evbuffer* all, const std::string& text) {
    const std::string rest(3000, 'x');
    evbuffer_add(input.get(), rest.data(), rest.size());
    evbuffer_add(input.get(), text.data(), text.size());
    evbuffer_drain(input.get(), rest.size());
    ASSERT_EQ(evbuffer_remove_buffer(input.get(), all, text.size()), int(text.size()));
  });
}

/// The bytes must be in their order, whatever is copied and whatever is moved.
TEST(BufferMemoryOrder, is_that_of_the_calls) {
  const Buffer all(evbuffer_new());
  std::string expected;
  unsigned random = 1;
  for (int i = 0; i < 3000; ++i) {
    random = random * 1103515245U + 12345U;
    const std::size_t size = (random >> 16U) % (i % 7 == 0 ? 3000 : 30) + 1;
    const std::string text(size, char('a' + i % 26));
    const Buffer piece(evbuffer_new());
    evbuffer_add(piece.get(), text.data(), size / 2);
    evbuffer_add(piece.get(), text.data(), size - size / 2);
    if ((random & 0x10000) != 0) {
      evbuffer_add_buffer(all.get(), piece.get());
      expected += text;
    } else {
      evbuffer_prepend_buffer(all.get(), piece.get());
      expected = text + expected;
    }
  }
  ASSERT_EQ(evbuffer_get_length(all.get()), expected.size());
  EXPECT_EQ(std::string(reinterpret_cast<char*>(evbuffer_pullup(all.get(), -1)), expected.size()),
            expected);
}

}  // namespace
