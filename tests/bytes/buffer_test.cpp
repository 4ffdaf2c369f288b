// Each function of Buffer, and random sequences of calls compared with a string.
#include <tambour/bytes/buffer.h>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/files.h"
#include "support/random.h"
#include "support/scale.h"

namespace tambour::buffer_test {
namespace {

using namespace std::string_literals;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns a buffer with one segment for each text, which must outlive it: short text of other
/// buffers would be copied.
Buffer in_pieces(std::initializer_list<std::string_view> texts) {
  Buffer whole;
  for (const std::string_view text : texts) whole.append_shared(bytes_of(text), nullptr);
  return whole;
}

TEST(Buffer, grows_at_both_ends) {
  Buffer buffer;
  EXPECT_TRUE(buffer.empty());
  buffer.append("cd");
  buffer.prepend("b");
  buffer.append("");
  buffer.prepend("");
  buffer.append("e");
  buffer.prepend("a");
  EXPECT_EQ(buffer, "abcde");
  EXPECT_EQ(buffer.size(), 5U);
  EXPECT_EQ(char(buffer[3]), 'd');
}

TEST(Buffer, appends_and_prepends_its_own_bytes) {
  Buffer buffer("abc");
  for (int i = 0; i < 12; ++i) {
    const std::string before = buffer.to_string();
    buffer.append(buffer.coalesce());
    EXPECT_EQ(buffer, before + before);
  }
  const std::string before = buffer.to_string();
  buffer.prepend(buffer.coalesce());
  EXPECT_EQ(buffer, before + before);
  buffer.append(std::move(buffer));    // NOLINT: a self-append must do nothing.
  EXPECT_EQ(buffer, before + before);  // NOLINT
}

TEST(Buffer, makes_bytes_contiguous_on_request) {
  Buffer buffer = in_pieces({"abc", "def", "ghi"});
  EXPECT_EQ(text_of(buffer.front()), "abc");
  EXPECT_EQ(text_of(buffer.peek(2)), "ab");
  EXPECT_EQ(text_of(buffer.peek(5)), "abcde");
  EXPECT_EQ(text_of(buffer.front()), "abcde");
  EXPECT_EQ(text_of(buffer.peek(100)), "abcdefghi");
  EXPECT_EQ(buffer.coalesce(), "abcdefghi");
  EXPECT_TRUE(Buffer().peek(1).empty());
}

TEST(Buffer, writes_integers_in_both_byte_orders) {
  Buffer buffer;
  buffer.append_be<std::uint8_t>(0x01);
  buffer.append_be<std::uint16_t>(0x0203);
  buffer.append_be<std::uint32_t>(0x04050607);
  buffer.append_be<std::uint64_t>(0x08090a0b0c0d0e0f);
  EXPECT_EQ(buffer, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f");
  buffer.clear();
  buffer.append_le<std::uint16_t>(0x0201);
  buffer.append_le<std::int32_t>(-2);
  EXPECT_EQ(buffer, "\x01\x02\xfe\xff\xff\xff");
  buffer.prepend_be<std::uint32_t>(6);
  EXPECT_EQ(buffer.peek_be<std::uint32_t>(), 6U);
  buffer.prepend_le<std::int16_t>(-3);
  EXPECT_EQ(buffer.read_le<std::int16_t>(), -3);
  EXPECT_EQ(buffer.read_be<std::uint32_t>(), 6U);
  EXPECT_EQ(buffer.read_le<std::uint16_t>(), 0x0201);
  EXPECT_EQ(buffer.read_be<std::int32_t>(), std::int32_t(0xfeffffff));
  EXPECT_TRUE(buffer.empty());
}

TEST(Buffer, reads_integers_across_blocks) {
  Buffer buffer = in_pieces({"\x01", "\x02\x03", "\x04", "\x05\x06\x07\x08", "\x09"});
  EXPECT_EQ(buffer.peek_be<std::uint64_t>(), 0x0102030405060708U);
  EXPECT_EQ(buffer.peek_le<std::uint64_t>(1), 0x0908070605040302U);
  EXPECT_EQ(buffer.peek_be<std::uint16_t>(7), 0x0809);
  EXPECT_EQ(buffer.peek_be<std::uint8_t>(8), 9);
  // Nothing was made contiguous or removed.
  EXPECT_EQ(buffer.front().size(), 1U);
  EXPECT_EQ(buffer.size(), 9U);
  EXPECT_EQ(buffer.read_be<std::uint32_t>(), 0x01020304U);
  EXPECT_EQ(buffer.read_le<std::uint32_t>(), 0x08070605U);
  EXPECT_EQ(buffer.read_be<std::uint8_t>(), 9);
}

TEST(Buffer, returns_no_integer_if_bytes_are_missing) {
  Buffer buffer("abc");
  EXPECT_EQ(buffer.read_be<std::uint32_t>(), std::nullopt);
  EXPECT_EQ(buffer.read_le<std::uint64_t>(), std::nullopt);
  EXPECT_EQ(buffer.peek_be<std::uint16_t>(2), std::nullopt);
  EXPECT_EQ(buffer.peek_be<std::uint8_t>(3), std::nullopt);
  EXPECT_EQ(buffer.peek_le<std::uint8_t>(SIZE_MAX), std::nullopt);
  EXPECT_EQ(buffer, "abc");
  EXPECT_EQ(Buffer().peek_be<std::uint8_t>(), std::nullopt);
}

TEST(Buffer, copies_from_any_index) {
  const Buffer buffer = in_pieces({"abc", "def", "g"});
  for (std::size_t from = 0; from < 9; ++from) {
    std::string copy(3, '-');
    const std::size_t count = buffer.copy_to(std::as_writable_bytes(std::span(copy)), from);
    EXPECT_EQ(copy.substr(0, count), from < 7 ? "abcdefg"s.substr(from, 3) : "") << from;
  }
}

TEST(Buffer, search_finds_matches_across_blocks) {
  const Buffer buffer = in_pieces({"ab\r", "\nab", "\r\r", "\n", "c"});
  EXPECT_EQ(buffer.find("\r\n"), 2U);
  EXPECT_EQ(buffer.find("\r\n", 3), 7U);
  EXPECT_EQ(buffer.find("\r\n", 7), 7U);
  EXPECT_EQ(buffer.find("\r\n", 8), std::nullopt);
  EXPECT_EQ(buffer.find("\nab\r\r\nc"), 3U);
  EXPECT_EQ(buffer.find("\nab\r\r\ncd"), std::nullopt);
  EXPECT_EQ(buffer.find('c'), 9U);
  EXPECT_EQ(buffer.find('x'), std::nullopt);
  EXPECT_EQ(buffer.find("", 10), 10U);
  EXPECT_EQ(buffer.find("", 11), std::nullopt);
  EXPECT_EQ(buffer.find("a", SIZE_MAX), std::nullopt);
  EXPECT_EQ(Buffer().find('a'), std::nullopt);
}

TEST(Buffer, takes_large_parts_without_copying) {
  const std::string a(2000, 'a');
  const std::string b(2000, 'b');
  Buffer buffer = in_pieces({a, b, "ghi"});
  const std::byte* const here = buffer.front().data();
  Buffer taken = buffer.take(3000);
  EXPECT_EQ(taken, a + b.substr(1000));
  EXPECT_EQ(buffer, b.substr(1000) + "ghi");
  EXPECT_EQ(taken.front().data(), here);
  EXPECT_EQ(buffer.take(100'000), b.substr(1000) + "ghi");
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.take(1), "");
}

TEST(Buffer, shared_bytes_are_not_overwritten) {
  Buffer buffer("abc");
  Buffer shared = buffer.slice();
  buffer.append("d");
  shared.append("x");
  buffer.prepend("<");
  shared.prepend(">");
  EXPECT_EQ(buffer, "<abcd");
  EXPECT_EQ(shared, ">abcx");
  EXPECT_EQ(buffer.slice(1, 3), "abc");
  EXPECT_EQ(buffer.slice(4, SIZE_MAX), "d");
  EXPECT_EQ(buffer.slice(SIZE_MAX, SIZE_MAX), "");
  // The only remaining owner may write in place.
  shared.clear();
  Buffer head = buffer.take(2);
  head.append("!");
  EXPECT_EQ(head, "<a!");
  EXPECT_EQ(buffer, "bcd");
}

TEST(Buffer, keeps_the_owner_of_external_bytes_until_the_last_reader_is_destroyed) {
  auto owner = std::make_shared<const std::string>("external bytes");
  Buffer buffer("<");
  buffer.append_shared(bytes_of(*owner), owner);
  EXPECT_EQ(owner.use_count(), 2);
  buffer.append(">");
  buffer.prepend(">>");
  EXPECT_EQ(buffer, ">><external bytes>");
  buffer.consume(3);
  Buffer part = buffer.take(5);
  EXPECT_EQ(owner.use_count(), 2);
  buffer.clear();
  EXPECT_EQ(part, "exter");
  EXPECT_EQ(owner.use_count(), 2);
  part.clear();
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_EQ(*owner, "external bytes");
  static constexpr std::string_view forever = "forever";
  buffer.append_shared(bytes_of(forever), nullptr);
  buffer.append("!");
  EXPECT_EQ(buffer, "forever!");
}

TEST(Buffer, prepares_and_commits_space) {
  Buffer buffer;
  auto room = buffer.prepare(10);
  ASSERT_GE(room.size(), 10U);
  buffer.commit(0);
  EXPECT_TRUE(buffer.empty());
  room = buffer.prepare(0);
  ASSERT_GE(room.size(), 1U);
  room[0] = std::byte('a');
  buffer.commit(1);
  room = buffer.prepare(100'000);
  ASSERT_GE(room.size(), 100'000U);
  // A larger block replaces the prepared one.
  room = buffer.prepare(200'000);
  std::fill_n(room.begin(), 3, std::byte('b'));
  buffer.commit(3);
  EXPECT_EQ(buffer, "abbb");
  // An append in between discards the prepared block.
  static_cast<void>(buffer.prepare(300'000));
  buffer.append("c");
  EXPECT_EQ(buffer, "abbbc");
  static_cast<void>(buffer.prepare(300'000));
  const Buffer moved = std::move(buffer);
  EXPECT_EQ(moved, "abbbc");
}

TEST(Buffer, rejects_impossible_sizes) {
  Buffer buffer("abc");
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 64, SIZE_MAX / 2 + 1,
                                 std::size_t(PTRDIFF_MAX), std::size_t(PTRDIFF_MAX) - 2}) {
    EXPECT_THROW(static_cast<void>(buffer.prepare(size)), std::length_error) << size;
  }
  for (const std::size_t size : {std::size_t(PTRDIFF_MAX) - 3, std::size_t(PTRDIFF_MAX) - 100}) {
    if (test::sanitized) break;  // Their allocators abort the program instead.
    EXPECT_THROW(static_cast<void>(buffer.prepare(size)), std::bad_alloc) << size;
  }
  EXPECT_EQ(buffer, "abc");
  EXPECT_EQ(buffer.take(SIZE_MAX), "abc");
}

TEST(Buffer, a_sum_of_shared_parts_has_a_limit_too) {
  // Repeated sharing of a huge foreign block exceeds every size in a few steps and needs no memory.
  static const auto zeros = std::make_shared<std::array<std::byte, 1>>();
  Buffer buffer;
  buffer.append_shared({zeros->data(), std::size_t{1} << 62}, zeros);
  Buffer other = buffer.slice();
  EXPECT_THROW(buffer.append(std::move(other)), std::length_error);
  EXPECT_EQ(buffer.size(), std::size_t{1} << 62);
  EXPECT_EQ(other.size(), std::size_t{1} << 62);  // NOLINT: nothing was moved.
  EXPECT_THROW(buffer.append_shared({zeros->data(), std::size_t{1} << 62}, zeros),
               std::length_error);
}

TEST(Buffer, reads_and_writes_descriptors) {
  test::Ends ends = test::open_socketpair();
  Buffer out = in_pieces({"abc", "def"});
  out.append(std::string(50'000, 'x'));
  const std::string all = out.to_string();
  EXPECT_EQ(out.write_to(ends.near.get()), all.size());
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(out.write_to(ends.near.get()), 0U);
  Buffer in("<");
  EXPECT_EQ(in.read_from(ends.far.get(), 2), 2U);
  EXPECT_EQ(in, "<ab");
  EXPECT_EQ(in.read_from(ends.far.get()), all.size() - 2);
  EXPECT_EQ(in, "<" + all);
  EXPECT_EQ(in.read_from(-1).error(), system_error(EBADF));
  EXPECT_EQ(in.write_to(-1).error(), system_error(EBADF));
  EXPECT_EQ(in, "<" + all);
  ends.near = {};
  EXPECT_EQ(in.read_from(ends.far.get()), 0U);
}

TEST(Buffer, provides_io_vectors_for_system_calls) {
  const Buffer buffer = in_pieces({"abc", "def", "ghi"});
  std::array<iovec, 2> two;
  EXPECT_EQ(buffer.pieces(two), 2U);
  EXPECT_EQ(two[1].iov_len, 3U);
  std::array<iovec, 8> eight;
  EXPECT_EQ(buffer.pieces(eight), 3U);
  EXPECT_EQ(buffer.pieces(eight, 4), 2U);
  EXPECT_EQ(eight[1].iov_len, 1U);
  EXPECT_EQ(buffer.pieces(eight, 0), 0U);
}

TEST(Buffer, parts_may_be_destroyed_on_other_threads) {
  Buffer buffer(std::string(100'000, 'x'));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([part = buffer.slice()]() mutable {
      while (!part.empty()) {
        Buffer piece = part.take(997);
        piece.append("y");
        EXPECT_EQ(piece.find('y'), piece.size() - 1);
      }
    });
  }
  while (!buffer.empty()) {
    buffer.consume(std::min<std::size_t>(buffer.size(), 1009));
    buffer.append("");
  }
  for (std::thread& thread : threads) thread.join();
}

/// The next search starts after the bytes already searched, unless bytes before them changed.
TEST(Buffer, search_resumes_where_it_ended_unless_earlier_bytes_changed) {
  const auto searched = [] {
    Buffer buffer = in_pieces({"aaa", "aaa"});
    EXPECT_EQ(buffer.search('x'), std::nullopt);
    return buffer;
  };
  Buffer buffer = searched();
  buffer.append("ax");
  EXPECT_EQ(buffer.search('x'), 7U);
  EXPECT_EQ(buffer.search('a'), 0U);
  EXPECT_EQ(buffer.search('x'), 7U);
  buffer = searched();
  buffer.prepend("x");
  EXPECT_EQ(buffer.search('x'), 0U);
  buffer = searched();
  buffer.prepend(Buffer("ax"));
  EXPECT_EQ(buffer.search('x'), 1U);
  for (std::size_t removed = 0; removed <= 6; ++removed) {
    buffer = searched();
    buffer.consume(removed);
    buffer.append(in_pieces({"x", "a"}));
    EXPECT_EQ(buffer.search('x'), 6 - removed);
    buffer = searched();
    const Buffer taken = buffer.take(removed);
    buffer.append("x");
    EXPECT_EQ(buffer.search('x'), 6 - removed);
    buffer = searched();
    EXPECT_EQ(buffer.peek(removed).size(), removed);
    buffer.append(Buffer("x"));
    EXPECT_EQ(buffer.search('x'), 6U);
  }
  // The result for one buffer must not be used for the bytes of another.
  buffer = searched();
  Buffer other("x");
  other.append(std::move(buffer));
  EXPECT_EQ(other.search('x'), 0U);
  Buffer into("ax");
  into.append(searched());
  EXPECT_EQ(into.search('x'), 1U);
  Buffer short_one = in_pieces({"a", "x"}), taken = searched();
  taken = short_one.take(2);
  EXPECT_EQ(taken.search('x'), 1U);
  EXPECT_EQ(Buffer().search('x'), std::nullopt);
  EXPECT_EQ(Buffer("\xff").search('\xff'), 0U);
}

class Model {
 public:
  void step() {
    const std::size_t i = random_.below(count), j = random_.below(count);
    Buffer& buffer = buffers_[i];
    std::string& text = texts_[i];
    const std::size_t some = random_.below(text.size() + 3);
    switch (random_.below(15)) {
      case 0:
        return grow(buffer, text);
      case 1: {
        const std::string more = random_text();
        buffer.prepend(more);
        text.insert(0, more);
        return;
      }
      case 2:
        if (i == j) return;
        buffer.append(std::move(buffers_[j]));
        text += std::exchange(texts_[j], "");
        return;
      case 3:
        if (i == j) return;
        buffer.prepend(std::move(buffers_[j]));
        text.insert(0, std::exchange(texts_[j], ""));
        return;
      case 4:
        return consume(buffer, text, std::min(some, text.size()));
      case 5:
        if (i == j) return;
        buffers_[j] = buffer.take(some);
        texts_[j] = text.substr(0, some);
        text.erase(0, some);
        return;
      case 6: {
        const std::size_t from = random_.below(text.size() + 1);
        Buffer part = buffer.slice(from, some);
        buffers_[j] = std::move(part);
        texts_[j] = std::string(text, from, some);
        return;
      }
      case 7:
        EXPECT_EQ(text_of(buffer.peek(some)), text.substr(0, some));
        return;
      case 8:
        return find(buffer, text);
      case 9: {
        auto owner = std::make_shared<const std::string>(random_text());
        buffer.append_shared(bytes_of(*owner), owner);
        text += *owner;
        return;
      }
      case 10:
        return prepare(buffer, text);
      case 11:
        buffer = Buffer(random_text()), text = buffer.to_string();
        return;
      case 12:
        std::swap(buffers_[i], buffers_[j]), std::swap(texts_[i], texts_[j]);
        return;
      case 13: {
        const char subject = char('a' + random_.below(5));
        EXPECT_EQ(buffer.search(subject).value_or(std::string::npos), text.find(subject));
        return;
      }
      default:
        return grow_by_own(buffer, text);
    }
  }

  void check() const {
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(buffers_[i].size(), texts_[i].size());
      ASSERT_TRUE(buffers_[i] == texts_[i]);
    }
  }

 private:
  static constexpr std::size_t count = 4;

  std::string random_text() {
    constexpr std::size_t lengths[] = {0, 1, 7, 100, 5000};
    std::string text;
    for (auto n = random_.below(lengths[random_.below(5)] + 1); n > 0; --n)
      text += char('a' + random_.below(3));
    return text;
  }
  void grow(Buffer& buffer, std::string& text) {
    const std::string more = random_text();
    buffer.append(more);
    text += more;
  }
  static void consume(Buffer& buffer, std::string& text, std::size_t size) {
    buffer.consume(size);
    text.erase(0, size);
  }
  void grow_by_own(Buffer& buffer, std::string& text) {
    if (text.size() > 20'000) return consume(buffer, text, text.size() - 10);
    buffer.append(buffer.front());
    text = buffer.to_string();
  }
  void find(const Buffer& buffer, const std::string& text) {
    std::string subject = random_text().substr(0, random_.below(6));
    const std::size_t from = random_.below(text.size() + 2);
    const std::size_t expected = text.find(subject, from);
    const auto found = buffer.find(subject, from);
    EXPECT_EQ(found.value_or(std::string::npos), expected);
  }
  void prepare(Buffer& buffer, std::string& text) {
    const std::string more = random_text();
    const auto room = buffer.prepare(more.size());
    ASSERT_GE(room.size(), more.size());
    std::ranges::copy(bytes_of(more), room.begin());
    buffer.commit(more.size());
    text += more;
  }

  test::Random random_;
  std::array<Buffer, count> buffers_;
  std::array<std::string, count> texts_;
};

TEST(Buffer, equals_a_string_after_random_operations) {
  TAMBOUR_TRACE_SEED();
  Model model;
  for (std::size_t i = test::scaled(100'000); i > 0; --i) {
    model.step();
    model.check();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tambour::buffer_test
