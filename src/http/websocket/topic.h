// A topic: a shard for each loop, and the publishers that wait for room.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/websocket_topic.h>
#include <tambour/task/task.h>

#include "http/websocket/compression.h"
#include "http/websocket/topic_shard.h"

namespace tambour::http::detail::websocket {

class Topic final {
 public:
  using Pointer = std::shared_ptr<Topic>;

  Topic(const std::vector<EventLoop*>& loops, WebSocketTopicOptions options);
  Topic(const Topic&) = delete;
  Topic& operator=(const Topic&) = delete;
  ~Topic() { close(); }

  /// Drops the subscribers; publish() that waits fails.
  void close() noexcept;
  /// Must be called before the first subscriber.
  void set_on_empty(std::function<void()> function) { shared_->on_empty = std::move(function); }

  // As the functions of WebSocketTopic.

  void subscribe(WebSocket& socket);
  void unsubscribe(WebSocket& socket) noexcept;
  [[nodiscard]] std::uint64_t id_of(const WebSocket& socket) const noexcept;
  Result<> try_publish(std::uint64_t excepted, WebSocketMessage message);
  [[nodiscard]] static Task<Result<>> publish(Pointer self, std::uint64_t excepted,
                                              WebSocketMessage message);
  [[nodiscard]] std::size_t size() const noexcept {
    return shared_->subscribers.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::size_t backlog_bytes() const noexcept;
  void add_to(WebSocketTopicStats& stats) const noexcept;

 private:
  [[nodiscard]] bool has_room() const noexcept;
  Result<> send(std::uint64_t excepted, WebSocketMessage message);
  [[nodiscard]] TopicFrames serialize(WebSocketMessage message);

  std::shared_ptr<TopicShared> shared_;
  std::vector<std::shared_ptr<TopicShard>> shards_;  ///< One for each loop.
  std::mutex compressing_;
  std::unique_ptr<SharedCompressor> compressor_;  ///< Null: messages are not compressed.
  std::atomic<std::uint64_t> published_{0};
  std::atomic<std::uint64_t> delayed_{0};
};

/// The topics of a WebSocketTopics.
class TopicMap final : public std::enable_shared_from_this<TopicMap> {
 public:
  TopicMap(std::vector<EventLoop*> loops, WebSocketTopicsOptions options)
      : loops_(std::move(loops)), options_(std::move(options)) {}

  [[nodiscard]] Result<> subscribe(WebSocket& socket, std::string_view name);
  /// Null if the topic has no subscribers.
  [[nodiscard]] Topic::Pointer find(std::string_view name) const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] WebSocketTopicStats stats() const noexcept;
  void close() noexcept;

 private:
  using Topics = std::map<std::string, Topic::Pointer, std::less<>>;

  [[nodiscard]] Topics::iterator add(std::string_view name);
  void remove_if_empty(std::string_view name) noexcept;

  const std::vector<EventLoop*> loops_;
  const WebSocketTopicsOptions options_;
  mutable std::mutex mutex_;
  Topics topics_;
  WebSocketTopicStats ended_;  ///< The counts of topics that no longer exist.
};

}  // namespace tambour::http::detail::websocket
