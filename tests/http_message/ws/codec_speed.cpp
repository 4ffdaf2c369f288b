// Measures the parts of the WebSocket codec in one thread: processor time, or instructions under
// callgrind.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/websocket/deflate.h"
#include "http_message/ws/frame_parser.h"
#include "http_message/ws/frame_writer.h"
#include "http_message/ws/frames.h"
#include "http_message/ws/masking.h"
#include "http_message/ws/utf8.h"

namespace {

using namespace tambour;
using namespace tambour::http::detail::ws;
using http::detail::websocket::Deflater;
using http::detail::websocket::DeflateSettings;

constexpr FrameLimits no_limits{UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX};
constexpr MaskKey key{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};

/// Keeps the compiler from removing what computes `value`.
void keep(const auto& value) { asm volatile("" : : "g"(&value) : "memory"); }

/// Time that other processes take does not count.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string text_of(std::string_view character, std::size_t size) {
  std::string text;
  while (text.size() < size) text += character;
  return text;
}

std::string chat() {
  std::string text;
  for (int i = 0; text.size() < 100000; ++i)
    text += "{\"id\":" + std::to_string(i * 7919 % 100000) + ",\"user\":\"user" +
            std::to_string(i % 97) + "\",\"text\":\"message number " + std::to_string(i) +
            " of the chat\"},";
  return text;
}

/// One call processes about `size` bytes.
std::function<void()> part_named(const std::string& name, std::size_t size,
                                 DeflateSettings settings) {
  const bool is_portable = name.starts_with("portable-");
  const std::map<std::string, std::string> characters = {
      {"ascii", "a"}, {"cyrillic", "\xD0\xB6"}, {"han", "\xE4\xB8\xAD"}};
  if (const auto found = characters.find(name.substr(is_portable ? 9 : 0));
      found != characters.end()) {
    return [text = text_of(found->second, size), is_portable] {
      Utf8Validator validator;
      const auto bytes = std::as_bytes(std::span(text));
      keep(is_portable ? validator.append_portable(bytes) : validator.append(bytes));
    };
  }
  std::vector<std::byte> bytes(size);
  if (name == "copy") {
    return [bytes, to = bytes]() mutable {
      std::memcpy(to.data(), bytes.data(), bytes.size());
      keep(to[0]);
    };
  }
  if (name == "mask") return [bytes]() mutable { mask_copy(bytes, bytes.data(), key, 0); };
  if (name == "mask-words") {
    // As a compiler does it that knows no vectors.
    return [bytes]() mutable {
      for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, &bytes[at], sizeof word);
        word ^= 0x0403020104030201;
        asm volatile("" : "+r"(word));
        std::memcpy(&bytes[at], &word, sizeof word);
      }
    };
  }
  if (name == "parse-text" || name == "parse-binary") {
    const unsigned first_byte = name == "parse-text" ? 0x81 : 0x82;
    return [frame = test::frame_for(Role::server, first_byte, std::string(size, 'x'))] {
      FrameParser parser(Role::server, no_limits);
      Buffer input(frame);
      Buffer payload;
      keep(parser.parse(input, payload));
    };
  }
  if (name == "write-server" || name == "write-client") {
    const auto fill = [](std::span<std::byte> random) { std::memset(random.data(), 7, 4); };
    return [writer = FrameWriter(name == "write-server" ? Role::server : Role::client, fill),
            payload = std::string(size, 'x')]() mutable {
      Buffer frames;
      writer.append_message(frames, Buffer(payload), {});
      keep(frames);
    };
  }
  if (name == "deflate-context" || name == "deflate-alone") {
    settings.has_context_takeover = name == "deflate-context";
    return [deflater = std::make_shared<Deflater>(settings), text = chat(), size,
            at = std::size_t{0}]() mutable {
      at = (at + size * 3 / 2) % (text.size() - size);
      Buffer frames;
      deflater->compress(Buffer(std::string_view(text).substr(at, size)), true, frames);
      keep(frames);
    };
  }
  if (name == "buffer") return [text = std::string(size, 'x')] { keep(Buffer(text)); };
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 2 ? argv[1] : "";
  const std::size_t size = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const std::size_t megabytes = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 20;
  const auto number = [&](int index, int otherwise) {
    return argc > index ? std::atoi(argv[index]) : otherwise;
  };
  const DeflateSettings settings{
      .window_bits = number(4, 12), .level = number(6, 1), .memory_level = number(5, 5)};
  const auto part = size > 0 ? part_named(name, size, settings) : nullptr;
  if (!part) {
    std::fprintf(
        stderr,
        "usage: websocket_codec_speed PART SIZE [MEGABYTES [WINDOW_BITS MEMORY_LEVEL LEVEL]]\n"
        "parts: copy mask mask-words ascii cyrillic han portable-ascii portable-cyrillic "
        "portable-han parse-text parse-binary write-server write-client deflate-context "
        "deflate-alone buffer\n");
    return 2;
  }
  const std::size_t calls = 1 + megabytes * 1000000 / size;
  double best = 1e9;
  for (int round = 0; round < 10; ++round) {
    const double begin = processor_seconds();
    for (std::size_t i = 0; i < calls / 10 + 1; ++i) part();
    best = std::min(best, (processor_seconds() - begin) / static_cast<double>(calls / 10 + 1));
  }
  std::printf("%s of %zu bytes: %.1f ns, %.2f GB/s\n", name.c_str(), size, best * 1e9,
              static_cast<double>(size) / best / 1e9);
  return 0;
}
