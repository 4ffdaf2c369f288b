// Publish and subscribe for WebSockets: a message that is published to a topic is sent to each of
// its subscribers, on every loop of a group.
//
//   http::WebSocketTopic news(loops);
//   Task<> serve(http::WebSocket& socket, http::Request&) {
//     news.subscribe(socket);
//     for (;;) {  // Until the peer or the server closes it.
//       const Result<http::WebSocketMessage> message = co_await socket.receive();
//       if (!message) co_return;
//     }
//   }
//   ...
//   Result<> published = news.try_publish(http::WebSocketMessage("Hello"));  // On any thread.
//
// A message is serialized once, and compressed once. WebSocketTopicOptions::when_slow says what
// happens to a subscriber that reads too slowly; it never loses messages without a counter. See
// docs/websocket.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include <tambour/base/clock.h>
#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/websocket.h>
#include <tambour/task/task.h>
#include <tambour/threads/loop_group.h>

namespace tambour::http::detail::websocket {
class Topic;
class TopicMap;
}  // namespace tambour::http::detail::websocket

#pragma GCC visibility push(default)

namespace tambour::http {

/// What happens if messages wait for a subscriber, and take
/// WebSocketTopicOptions::backlog_bytes_max bytes or more.
enum class WhenSubscriberSlow : std::uint8_t {
  /// The subscriber is closed with CloseCode::policy_violation.
  close,
  /// The subscriber does not get the oldest messages that wait for it: WebSocketTopicStats::dropped
  /// and WebSocketStats::messages_dropped count them.
  drop_oldest,
  /// publish() waits, for at most WebSocketTopicOptions::delivery_timeout.
  delay_publisher,
};

/// The limits of a WebSocketTopic, and what happens to slow subscribers. Not an aggregate, for the
/// reason that WebSocketOptions names. Assign the members.
struct WebSocketTopicOptions {
  WebSocketTopicOptions() noexcept;

  WhenSubscriberSlow when_slow = WhenSubscriberSlow::close;
  /// Bytes that wait in a subscriber's WebSocket. If it has as many or more, further messages wait
  /// in the backlog of its loop. Subscribers share the memory of a message. Instead of
  /// WebSocketOptions::unsent_bytes_max, which applies to other messages.
  std::size_t unsent_bytes_max = std::size_t{256} * 1024;
  /// The limit of a backlog: bytes of the messages that wait for at least one subscriber of a loop,
  /// about 200 bytes for each included. The same limit applies to the messages that wait for a loop
  /// that is busy.
  std::size_t backlog_bytes_max = std::size_t{4} * 1024 * 1024;
  /// For WhenSubscriberSlow::delay_publisher: a subscriber for which a message has waited in the
  /// backlog for this time is closed with CloseCode::policy_violation. Zero: none is closed, except
  /// by WebSocketOptions::write_timeout.
  Duration delivery_timeout = std::chrono::seconds(30);
  /// If it has a value, messages are compressed for the subscribers that have agreed on
  /// permessage-deflate with a window of at least `window_bits`. A compressed message refers to
  /// none before it. `window_bits`, `level`, `memory_level` and `message_bytes_min` apply.
  std::optional<WebSocketCompression> compression{};
};

/// Counts since the topic was made.
struct WebSocketTopicStats {
  std::uint64_t published = 0;  ///< Accepted by publish() and try_publish().
  /// Messages to single subscribers, which their WebSockets have accepted.
  std::uint64_t sent = 0;
  /// Messages that single subscribers did not get, because they or their loop were too slow.
  std::uint64_t dropped = 0;
  std::uint64_t closed = 0;   ///< Subscribers that were closed because they read too slowly.
  std::uint64_t delayed = 0;  ///< Calls of publish() that had to wait.
};

/// A topic for the WebSockets of one loop, or of the loops of a LoopGroup.
///
/// Order: messages that one thread publishes arrive in that order, at each subscriber, and each
/// message that the subscriber gets arrives as a whole. A message is sent to the WebSockets that
/// are subscribers when their loop takes it, soon after it was published.
/// Lifetime: a WebSocket that is closed or destroyed is no subscriber any more. The topic may be
/// destroyed on any thread; messages that no loop has taken by then are lost, and publish() that
/// waits fails with ECANCELED. The loops must exist when a message is published.
/// Thread: functions that have a WebSocket as argument must be called on the thread of its loop;
/// the others may be called on any thread.
/// Errors: if memory is exhausted while a loop sends, the WebSocket is closed with ENOMEM.
class WebSocketTopic {
 public:
  /// Throws std::bad_alloc.
  explicit WebSocketTopic(EventLoop& loop, WebSocketTopicOptions options = {});
  explicit WebSocketTopic(LoopGroup& loops, WebSocketTopicOptions options = {});
  WebSocketTopic(const WebSocketTopic&) = delete;
  WebSocketTopic& operator=(const WebSocketTopic&) = delete;
  ~WebSocketTopic();

  /// The WebSocket must be one of a server, and its loop one of the topic's; aborts otherwise. No
  /// effect on a subscriber, and on a WebSocket that is closed or closing. Throws std::bad_alloc.
  void subscribe(WebSocket& socket);
  /// Messages in the backlog are not sent to the WebSocket. No effect if it is not a subscriber.
  void unsubscribe(WebSocket& socket) noexcept;
  [[nodiscard]] bool is_subscribed(const WebSocket& socket) const noexcept;

  /// Publishes without waiting. Fails with WebSocketError::invalid_utf8 for text that is not UTF-8.
  /// Fails with EAGAIN if WebSocketTopicOptions::backlog_bytes_max or more bytes wait for a loop:
  /// with WhenSubscriberSlow::delay_publisher, in its queue and its backlog, and no subscriber gets
  /// the message; otherwise, in its queue because the loop is busy, and the subscribers on other
  /// loops get the message. Throws like EventLoop::post(); the message is then published on some of
  /// the loops only.
  Result<> try_publish(WebSocketMessage message);
  /// The same to all subscribers but one, for example to all except the author.
  Result<> try_publish_except(const WebSocket& excepted, WebSocketMessage message);

  /// With WhenSubscriberSlow::delay_publisher, waits until fewer bytes wait for each loop.
  /// Publishers that wait are not served in the order of their calls. Fails like try_publish(), and
  /// with ECANCELED if the task was asked to stop or the topic is destroyed: then the message is
  /// not published.
  ///
  /// A peer that does not read delays all publishers, for up to `delivery_timeout`. If a handler
  /// publishes what it receives, a peer that writes without reading delays itself.
  [[nodiscard]] Task<Result<>> publish(WebSocketMessage message);
  /// The excepted WebSocket may be destroyed meanwhile.
  [[nodiscard]] Task<Result<>> publish_except(const WebSocket& excepted, WebSocketMessage message);

  /// The number of subscribers.
  [[nodiscard]] std::size_t size() const noexcept;
  /// Bytes that wait in queues and backlogs of loops.
  [[nodiscard]] std::size_t backlog_bytes() const noexcept;
  [[nodiscard]] WebSocketTopicStats stats() const noexcept;

 private:
  std::shared_ptr<detail::websocket::Topic> topic_;
};

/// The limits of WebSocketTopics. Not an aggregate, for the reason that WebSocketOptions names.
/// Assign the members.
struct WebSocketTopicsOptions {
  WebSocketTopicsOptions() noexcept;

  /// Topics that have subscribers.
  std::size_t topics_max = 10'000;
  /// Topics of one WebSocket.
  std::size_t subscriptions_max = 100;
  /// In bytes.
  std::size_t name_bytes_max = 256;
  /// The options of the topic with this name, which gets its first subscriber. Empty: the defaults.
  /// Invoked while all topics are locked, so it must not use them.
  std::function<WebSocketTopicOptions(std::string_view name)> options_for{};
};

/// Topics by name, for names that clients choose. A topic exists while it has subscribers.
///
/// Lifetime, threads and errors are those of WebSocketTopic. A lock is held while a topic is looked
/// up.
class WebSocketTopics {
 public:
  /// Throws std::bad_alloc.
  explicit WebSocketTopics(EventLoop& loop, WebSocketTopicsOptions options = {});
  explicit WebSocketTopics(LoopGroup& loops, WebSocketTopicsOptions options = {});
  WebSocketTopics(const WebSocketTopics&) = delete;
  WebSocketTopics& operator=(const WebSocketTopics&) = delete;
  ~WebSocketTopics();

  /// Like WebSocketTopic::subscribe(). Fails with ENAMETOOLONG for a name of more than
  /// `name_bytes_max` bytes, with ENOBUFS at the other limits, and with EBADF for a WebSocket that
  /// is closed or closing.
  [[nodiscard]] Result<> subscribe(WebSocket& socket, std::string_view name);
  void unsubscribe(WebSocket& socket, std::string_view name) noexcept;

  /// Like the functions of WebSocketTopic. Without subscribers, the message is discarded.
  Result<> try_publish(std::string_view name, WebSocketMessage message);
  Result<> try_publish_except(const WebSocket& excepted, std::string_view name,
                              WebSocketMessage message);
  [[nodiscard]] Task<Result<>> publish(std::string_view name, WebSocketMessage message);
  [[nodiscard]] Task<Result<>> publish_except(const WebSocket& excepted, std::string_view name,
                                              WebSocketMessage message);

  /// The number of topics.
  [[nodiscard]] std::size_t size() const noexcept;
  /// The number of subscribers of a topic.
  [[nodiscard]] std::size_t size(std::string_view name) const noexcept;
  /// Counts of all topics since this object was made, also of those that no longer exist.
  [[nodiscard]] WebSocketTopicStats stats() const noexcept;

 private:
  std::shared_ptr<detail::websocket::TopicMap> topics_;
};

}  // namespace tambour::http

#pragma GCC visibility pop
