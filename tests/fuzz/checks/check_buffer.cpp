// Calls on four buffers that share blocks, compared with strings.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <tambour/bytes/buffer.h>

#include "fuzz/bytes_checks.h"
#include "fuzz/input.h"

namespace tambour::fuzz {
namespace {

constexpr std::size_t none = std::string::npos;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string string_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns a span that is larger than any buffer. The bytes are foreign and never read.
std::span<const std::byte> impossible(std::size_t size) {
  static const std::byte one{};
  return {&one, size};
}

template <class Call>
void expect_too_long(Call call) {
  try {
    call();
  } catch (const std::length_error&) {
    return;
  }
  throw Wrong{"more than a buffer can hold was taken"};
}

class Player {
 public:
  explicit Player(Bytes bytes) : input_(bytes) {}

  void play() {
    while (!input_.empty()) {
      const std::size_t i = input_.below(count), j = input_.below(count);
      const std::size_t call = input_.below(20);
      if (call < 10) {
        grow(call, i, j);
      } else if (call < 15) {
        shrink(call, i, j);
      } else {
        look(call, i);
      }
      if (texts_[i].size() > std::size_t{1} << 16) {
        buffers_[i].clear();
        texts_[i].clear();
      }
      check();
    }
  }

 private:
  static constexpr std::size_t count = 4;

  /// Most sizes are small; some cross block boundaries; a few exceed the maximum.
  std::size_t size() {
    const std::size_t byte = input_.byte();
    if (byte < 128) return byte % 16;
    if (byte < 192) return byte;
    if (byte < 250) return byte * (input_.byte() % 32);
    constexpr std::size_t special[] = {4096 - 32,
                                       4096,
                                       65536,
                                       SIZE_MAX,
                                       SIZE_MAX / 2,
                                       Buffer::max_size() + 1,
                                       Buffer::max_size() - 1};
    return special[byte % std::size(special)];
  }

  std::string text() {
    static const std::string endless = [] {
      std::string created;
      for (std::size_t i = 0; i < 70'000; ++i) created += char('a' + i * i % 7 % 3);
      return created;
    }();
    const std::size_t length = size() % 66'000;
    // Mostly of one letter, so that some letters do not occur in a buffer.
    const std::size_t kind = input_.below(6);
    if (kind < 4) return std::string(length, char('a' + kind));
    return endless.substr(made_++ % 7, length);
  }

  void grow(std::size_t call, std::size_t i, std::size_t j) {
    Buffer& buffer = buffers_[i];
    std::string& known = texts_[i];
    const std::string more = text();
    switch (call) {
      case 0:
        buffer.append(more);
        break;
      case 1:
        buffer.prepend(more);
        known.insert(0, more);
        return;
      case 2: {
        auto owner = std::make_shared<const std::string>(more);
        buffer.append_shared(bytes_of(*owner), owner);
        ++shared_;
        break;
      }
      case 3:
        if (i == j) return;
        buffer.append(std::move(buffers_[j]));
        known += std::exchange(texts_[j], "");
        return;
      case 4:
        if (i == j) return;
        buffer.prepend(std::move(buffers_[j]));
        known.insert(0, std::exchange(texts_[j], ""));
        return;
      case 5:
      case 6:
        return prepare(buffer, known, call == 5);
      case 7: {
        const std::string local = string_of(buffer.front());
        buffer.append(buffer.front());
        known += local;
        return;
      }
      case 8: {
        const std::string own_text = string_of(buffer.front());
        buffer.prepend(buffer.front());
        known.insert(0, own_text);
        return;
      }
      default:
        return refuse(buffer, buffers_[j == i ? (i + 1) % count : j]);
    }
    known += more;
  }

  /// Prepares space, which is filled, filled in part, or not used.
  void prepare(Buffer& buffer, std::string& known, bool commits) {
    const std::size_t wanted = size();
    if (wanted > Buffer::max_size() - buffer.size())
      return expect_too_long([&] { static_cast<void>(buffer.prepare(wanted)); });
    if (wanted > std::size_t{1} << 20) return;
    const auto room = buffer.prepare(wanted);
    expect(room.size() >= std::max<std::size_t>(wanted, 1), "less space than requested");
    const std::size_t used = std::min(size(), room.size());
    for (std::size_t k = 0; k < used; ++k) room[k] = std::byte('x');
    if (!commits) return;
    buffer.commit(used);
    known.append(used, 'x');
  }

  /// Calls that would exceed the maximum size change nothing.
  static void refuse(Buffer& buffer, Buffer& other) {
    const std::size_t left = Buffer::max_size() - buffer.size();
    const auto too_many = impossible(left + 1);
    expect_too_long([&] { buffer.append(too_many); });
    expect_too_long([&] { buffer.prepend(too_many); });
    expect_too_long([&] { buffer.append_shared(too_many, nullptr); });
    expect_too_long([&] { static_cast<void>(buffer.prepare(left + 1)); });
    Buffer huge;
    huge.append_shared(impossible(Buffer::max_size()), std::make_shared<int>());
    if (!other.empty()) {
      expect_too_long([&] { huge.append(other.front()); });
      expect_too_long([&] { other.append(std::move(huge)); });
    }
    expect(huge.size() == Buffer::max_size(), "rejected bytes were appended");
    expect(huge.slice(1, SIZE_MAX).size() == Buffer::max_size() - 1, "a part has a wrong size");
    expect(huge.take(Buffer::max_size() - 1).size() == Buffer::max_size() - 1,
           "take() returned a buffer of the wrong size");
    expect(huge.size() == 1, "take() left the wrong number of bytes");
  }

  void shrink(std::size_t call, std::size_t i, std::size_t j) {
    Buffer& buffer = buffers_[i];
    std::string& known = texts_[i];
    const std::size_t some = size();
    switch (call) {
      case 10: {
        const std::size_t consumed = std::min(some, known.size());
        buffer.consume(consumed);
        known.erase(0, consumed);
        return;
      }
      case 11: {
        Buffer taken = buffer.take(some);
        const std::string expected = known.substr(0, some);
        known.erase(0, some);
        buffers_[j] = std::move(taken);
        texts_[j] = expected;
        return;
      }
      case 12: {
        const std::size_t from = size();
        buffers_[j] = Buffer(buffer.slice(from, some));
        texts_[j] = from > known.size() ? "" : std::string(known, from, some);
        return;
      }
      case 13:
        buffer.swap(buffers_[j]);
        known.swap(texts_[j]);
        return;
      default:
        buffer.clear();
        known.clear();
    }
  }

  static std::optional<std::uint32_t> big_endian_at(const std::string& known, std::size_t from) {
    if (from > known.size() || known.size() - from < 4) return std::nullopt;
    std::uint32_t value = 0;
    for (const char text : known.substr(from, 4))
      value = value << 8 | static_cast<unsigned char>(text);
    return value;
  }

  void look(std::size_t call, std::size_t i) {
    Buffer& buffer = buffers_[i];
    const std::string& known = texts_[i];
    const std::size_t some = size();
    switch (call) {
      case 15:
        return expect(string_of(buffer.peek(some)) == known.substr(0, some), "peek()");
      case 16: {
        const std::string given_text = text().substr(0, 4);
        const auto found = buffer.find(given_text, some).value_or(none);
        return expect(found == known.find(given_text, some), "find()");
      }
      case 17: {
        const char subject = char('a' + input_.below(4));
        return expect(buffer.search(subject).value_or(none) == known.find(subject), "search()");
      }
      case 18: {
        std::array<iovec, 3> places;
        std::string all;
        for (std::size_t k = buffer.pieces(places, some); k > 0; --k)
          all.insert(0, static_cast<const char*>(places[k - 1].iov_base), places[k - 1].iov_len);
        return expect(all == known.substr(0, all.size()) && all.size() <= some, "pieces()");
      }
      default: {
        if (some < known.size())
          expect(std::to_integer<char>(buffer[some]) == known[some], "operator[]");
        std::string copied(std::min<std::size_t>(some, 5000), '\0');
        copied.resize(buffer.copy_to(std::as_writable_bytes(std::span(copied))));
        expect(copied == known.substr(0, std::min<std::size_t>(some, 5000)), "copy_to()");
        expect(buffer.peek_be<std::uint32_t>(some) == big_endian_at(known, some), "peek_be()");
      }
    }
  }

  void check() {
    for (std::size_t i = 0; i < count; ++i) {
      expect(buffers_[i].size() == texts_[i].size(), "size()");
      expect(buffers_[i] == texts_[i], "the contents of the buffer are wrong");
      expect(buffers_[i].empty() == buffers_[i].front().empty(), "front()");
      expect(buffers_[i].memory_bytes() <= memory_max(i), "memory_bytes()");
      // After each step, so that there is always a stored result of the last search.
      expect(buffers_[i].search('d').value_or(none) == texts_[i].find('d'), "search() again");
    }
  }

  /// The bound that the header of Buffer promises; `shared_` calls of append_shared() may concern
  /// this buffer..
  [[nodiscard]] std::size_t memory_max(std::size_t i) const {
    return 128 * texts_[i].size() + 512 + 300 * shared_;
  }

  Input input_;
  std::size_t shared_ = 0;
  std::array<Buffer, count> buffers_;
  std::array<std::string, count> texts_;
  std::size_t made_ = 0;
};

}  // namespace

void check_buffer(Bytes bytes) { Player(bytes).play(); }

}  // namespace tambour::fuzz
