// A connection to Redis with its protocol (RESP, version 2): commands and replies, and streams.
#pragma once

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/tambour.h>

namespace chat {

using namespace tambour;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

/// A reply: a text, or an array of replies.
struct Reply {
  char kind = '_';  ///< '+', '-', ':', '$' or '*' as in the protocol; '_': nil.
  std::string text;
  std::vector<Reply> items;
};

/// An entry of a stream that has one field.
struct Entry {
  std::string id;
  std::string text;
};

/// One connection, which is opened by the first command, and again after an error.
/// Not for several tasks at the same time: use a TaskMutex.
class Redis {
 public:
  explicit Redis(std::string address) : address_(std::move(address)) {}

  /// Fails if the connection fails, after which the command may or may not have been executed, and
  /// with EPROTO for a reply that is an error.
  Task<Result<Reply>> ask(Words words) {
    Result<Reply> reply = co_await ask_once(std::move(words));
    if (!reply) stream_.close();
    if (reply && reply->kind == '-') reply = std::unexpected(system_error(EPROTO));
    co_return reply;
  }

  /// Appends to a stream of about 10,000 entries. The reply is the id.
  Task<Result<Reply>> append(std::string_view stream, std::string_view text) {
    return ask(words_of({"XADD", stream, "MAXLEN", "~", "10000", "*", "text", text}));
  }
  /// The last entries of a stream, the newest first.
  Task<Result<Reply>> last(std::string_view stream, int count) {
    return ask(words_of({"XREVRANGE", stream, "+", "-", "COUNT", std::to_string(count)}));
  }
  /// Waits for entries of a stream after an id; none after five seconds.
  Task<Result<Reply>> next(std::string_view stream, std::string_view after) {
    return ask(words_of({"XREAD", "COUNT", "1000", "BLOCK", "5000", "STREAMS", stream, after}));
  }

  /// The entries in a reply to last(), or next(), the oldest first.
  static std::vector<Entry> entries_of_last(const Reply& reply) {
    std::vector<Entry> entries = entries_of(reply);
    std::ranges::reverse(entries);
    return entries;
  }
  static std::vector<Entry> entries_of_next(const Reply& reply) {
    // One stream: its name, and its entries.
    if (reply.items.empty() || reply.items[0].items.size() < 2) return {};
    return entries_of(reply.items[0].items[1]);
  }

 private:
  Task<Result<Reply>> ask_once(Words words) {
    if (!stream_.is_open()) {
      input_.clear();
      ConnectOptions options;
      options.timeout = 2s;
      ConnectResult connected = co_await connect(address_, options);
      if (!connected) co_return std::unexpected(Error(connected.error()));
      stream_ = std::move(*connected);
    }
    std::string command = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words)
      command.append("$").append(std::to_string(word.size())).append("\r\n" + word + "\r\n");
    const Result<> written = co_await stream_.write(command);
    if (!written) co_return std::unexpected(written.error());
    co_return co_await timeout(10s, read_reply());
  }

  Task<Result<Reply>> read_reply() {
    auto line = co_await read_line(stream_, input_);
    if (!line) co_return std::unexpected(line.error());
    std::string text = line->to_string();
    Reply reply;
    reply.kind = text.empty() ? ' ' : text[0];
    text.erase(0, 1);
    if (reply.kind == '+' || reply.kind == '-' || reply.kind == ':') {
      reply.text = std::move(text);
      co_return reply;
    }
    long count = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), count);
    if (parsed.ec != std::errc() || (reply.kind != '$' && reply.kind != '*') || count > 1'000'000)
      co_return std::unexpected(system_error(EPROTO));
    if (count < 0) co_return Reply();
    if (reply.kind == '$') {
      auto bytes = co_await read_exactly(stream_, input_, static_cast<std::size_t>(count) + 2);
      if (!bytes) co_return std::unexpected(bytes.error());
      reply.text = bytes->take(static_cast<std::size_t>(count)).to_string();
    }
    while (reply.kind == '*' && count-- > 0) {
      Result<Reply> item = co_await read_reply();
      if (!item) co_return item;
      reply.items.push_back(std::move(*item));
    }
    co_return reply;
  }

  static Words words_of(std::initializer_list<std::string_view> words) {
    return {words.begin(), words.end()};
  }

  /// Each entry is an array of its id and of an array of fields and values.
  static std::vector<Entry> entries_of(const Reply& reply) {
    std::vector<Entry> entries;
    for (const Reply& item : reply.items) {
      if (item.items.size() == 2 && item.items[1].items.size() >= 2)
        entries.push_back({item.items[0].text, item.items[1].items[1].text});
    }
    return entries;
  }

  std::string address_;
  ConnectedStream stream_;
  Buffer input_;
};

}  // namespace chat
