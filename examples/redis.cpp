// A client for Redis and other servers with its protocol (RESP, version 2): one command, one reply.
//
//   build/examples/redis 127.0.0.1:6379 SET greeting hello
//   build/examples/redis unix:/run/redis/redis.sock GET greeting
//
// Shows a protocol with nested lines and length-prefixed data.
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

/// Converts a reply to text; an array becomes one line per item.
Task<Result<std::string>> read_reply(Stream& stream, Buffer& in) {
  auto line = co_await read_line(stream, in);
  if (!line) co_return std::unexpected(line.error());
  const std::string said = line->to_string();
  const char kind = said.empty() ? ' ' : said[0];
  if (kind == '+' || kind == ':' || kind == '-') co_return said.substr(kind == '-' ? 0 : 1);
  long count = 0;
  const auto parsed = std::from_chars(said.data() + 1, said.data() + said.size(), count);
  if (parsed.ec != std::errc() || (kind != '$' && kind != '*') || count > 1'000'000)
    co_return std::unexpected(system_error(EPROTO));
  if (count < 0) co_return "(nil)";
  if (kind == '$') {
    auto bytes = co_await read_exactly(stream, in, static_cast<std::size_t>(count) + 2);
    if (!bytes) co_return std::unexpected(bytes.error());
    co_return bytes->take(static_cast<std::size_t>(count)).to_string();
  }
  std::string items;
  while (count-- > 0) {
    auto item = co_await read_reply(stream, in);
    if (!item) co_return item;
    items += *item + "\n";
  }
  co_return items;
}

Task<Result<std::string>> ask(Stream& stream, Buffer& in, Words words) {
  std::string command("*");
  command.append(std::to_string(words.size())).append("\r\n");
  for (const std::string& word : words)
    command.append("$").append(std::to_string(word.size())).append("\r\n" + word + "\r\n");
  if (auto written = co_await stream.write(command); !written)
    co_return std::unexpected(written.error());
  co_return co_await timeout(5s, read_reply(stream, in));
}

Task<Result<Stream>> connect(Endpoint to) {
  if (to.is_ip()) co_return co_await TcpStream::connect(to);
  co_return co_await UnixStream::connect(to);
}

Task<> talk(Endpoint to, Words words, bool& is_well) {
  auto stream = co_await timeout(5s, connect(to));
  Buffer in;
  Result<std::string> reply = std::unexpected(stream ? Error() : stream.error());
  if (stream) reply = co_await ask(*stream, in, std::move(words));
  is_well = reply && !reply->starts_with('-');
  std::printf("%s\n", reply ? reply->c_str() : reply.error().message().c_str());
}

int main(int argc, char** argv) {
  if (argc < 3) return std::fputs("redis ADDRESS:PORT|unix:PATH COMMAND [WORD...]\n", stderr), 2;
  const auto at = Endpoint::parse(argv[1]);
  if (!at) return std::fprintf(stderr, "%s: %s\n", argv[1], at.error().message().c_str()), 2;
  EventLoop loop;
  bool is_well = false;
  spawn(loop, talk(*at, Words(argv + 2, argv + argc), is_well));
  loop.run();
  return is_well ? 0 : 1;
}
