// Parses and writes messages, for compare_with_dnspython.py. Reads packets, each preceded by its
// length in two bytes, and writes for each a 0 if it is malformed, or a 1, the length and the
// packet as the library writes it.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

#include <tambour/dns/message.h>

int main() {
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  std::string_view left = input;
  while (left.size() >= 2) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(left[at]); };
    const std::size_t size = byte(0) * 256U + byte(1);
    const std::string_view packet = left.substr(2, size);
    left.remove_prefix(2 + packet.size());
    const auto message =
        tambour::dns::Message::parse(std::as_bytes(std::span(packet.data(), packet.size())));
    if (!message) {
      std::cout << '\0';
      continue;
    }
    const auto written = message->write();
    if (!written) {
      std::cerr << "a parsed message cannot be written: " << written.error().message() << '\n';
      return 1;
    }
    std::cout << '\1' << static_cast<char>(written->size() >> 8U)
              << static_cast<char>(written->size()) << *written;
  }
  return 0;
}
