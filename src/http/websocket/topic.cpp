// WebSocketTopic and WebSocketTopics: publishing, and topics by name.
#include "http/websocket/topic.h"

#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/failure.h"
#include "http/websocket/access.h"
#include "http_message/ws/error.h"
#include "http_message/ws/frame_writer.h"
#include "http_message/ws/utf8.h"

namespace tambour::http {
namespace detail::websocket {
namespace {

std::vector<EventLoop*> loops_of(LoopGroup& group) {
  std::vector<EventLoop*> loops;
  loops.reserve(group.size());
  for (std::size_t i = 0; i < group.size(); ++i) loops.push_back(&group[i]);
  return loops;
}

/// A publisher that waits for room.
class WaitingPublisher {
 public:
  explicit WaitingPublisher(TopicShared& shared) noexcept : shared_(shared) {
    shared_.waiting_publishers.fetch_add(1, std::memory_order_seq_cst);
  }
  WaitingPublisher(const WaitingPublisher&) = delete;
  WaitingPublisher& operator=(const WaitingPublisher&) = delete;
  ~WaitingPublisher() { shared_.waiting_publishers.fetch_sub(1, std::memory_order_seq_cst); }

 private:
  TopicShared& shared_;
};

/// A short frame is copied: a queue of short messages must not hold a block of 4 KiB for each.
Buffer frame_of(Buffer payload, bool is_text, bool is_compressed) {
  Buffer frame;
  ws::FrameWriter(ws::Role::server)
      .append_message(frame, std::move(payload),
                      {.opcode = is_text ? ws::Opcode::text : ws::Opcode::binary,
                       .is_compressed = is_compressed});
  return frame.slice(0, frame.size());
}

}  // namespace

Topic::Topic(const std::vector<EventLoop*>& loops, WebSocketTopicOptions options)
    : shared_(std::make_shared<TopicShared>(options)) {
  if (shared_->options.compression)
    compressor_ = make_shared_compressor(*shared_->options.compression);
  shards_.reserve(loops.size());
  for (EventLoop* const loop : loops)
    shards_.push_back(std::make_shared<TopicShard>(*loop, shared_));
}

void Topic::close() noexcept {
  for (const auto& shard : shards_) shard->close();
  shared_->room.close();
}

void Topic::subscribe(WebSocket& socket) {
  Connection* const connection = Access::connection_of(socket);
  if (connection == nullptr || !connection->is_open()) return;
  tambour::detail::base::check(
      !connection->is_client(),
      "WebSocketTopic::subscribe() called with a WebSocket of a client: its frames are masked, so "
      "they cannot be shared; call send()");
  for (const auto& shard : shards_) {
    if (&shard->loop() == &connection->loop()) return shard->add(*connection, shared_.get());
  }
  tambour::detail::base::fail_check(
      "WebSocketTopic::subscribe(): the loop of the WebSocket is not one of the topic's; make the "
      "topic with the LoopGroup or the EventLoop that the server uses");
}

void Topic::unsubscribe(WebSocket& socket) noexcept {
  if (Connection* const connection = Access::connection_of(socket))
    TopicShard::remove(*connection, shared_.get());
}

std::uint64_t Topic::id_of(const WebSocket& socket) const noexcept {
  const Connection* const connection = Access::connection_of(socket);
  return connection != nullptr ? TopicShard::id_of(*connection, shared_.get()) : 0;
}

/// Several publishers may find room at once: the limit is exceeded by at most a message of each.
bool Topic::has_room() const noexcept {
  for (const auto& shard : shards_) {
    if (shard->held_bytes() >= shared_->options.backlog_bytes_max) return false;
  }
  return true;
}

TopicFrames Topic::serialize(WebSocketMessage message) {
  TopicFrames frames{.bytes = message.data.size()};
  const bool is_compressed = compressor_ != nullptr &&
                             shared_->compressing.load(std::memory_order_relaxed) > 0 &&
                             frames.bytes >= shared_->options.compression->message_bytes_min;
  if (is_compressed) {
    const std::scoped_lock lock(compressing_);
    frames.compressed = compressor_->compress(message.data.slice());
  }
  if (is_compressed)
    frames.compressed = frame_of(std::move(frames.compressed), message.is_text, true);
  frames.plain = frame_of(std::move(message.data), message.is_text, false);
  return frames;
}

Result<> Topic::send(std::uint64_t excepted, WebSocketMessage message) {
  published_.fetch_add(1, std::memory_order_relaxed);
  if (size() == 0) return {};
  const TopicFrames frames = serialize(std::move(message));
  bool is_complete = true;
  for (const auto& shard : shards_) {
    if (shard->size() > 0 && !shard->push(frames, excepted)) is_complete = false;
  }
  if (!is_complete) return tambour::detail::base::failure(EAGAIN);
  return {};
}

Result<> Topic::try_publish(std::uint64_t excepted, WebSocketMessage message) {
  if (message.is_text && !ws::is_utf8(message.data))
    return ws::failure(WebSocketError::invalid_utf8);
  if (shared_->options.when_slow == WhenSubscriberSlow::delay_publisher && !has_room())
    return tambour::detail::base::failure(EAGAIN);
  return send(excepted, std::move(message));
}

Task<Result<>> Topic::publish(Pointer self, std::uint64_t excepted, WebSocketMessage message) {
  const std::shared_ptr<TopicShared> shared = self->shared_;
  if (shared->options.when_slow != WhenSubscriberSlow::delay_publisher || self->has_room())
    co_return self->try_publish(excepted, std::move(message));
  if (message.is_text && !ws::is_utf8(message.data))
    co_return ws::failure(WebSocketError::invalid_utf8);
  self->delayed_.fetch_add(1, std::memory_order_relaxed);
  // The topic may be destroyed during the wait.
  const std::weak_ptr<Topic> topic = std::exchange(self, nullptr);
  const WaitingPublisher waiting(*shared);
  auto room = shared->room.subscribe();
  for (;;) {
    // The last subscriber has left.
    if (shared->subscribers.load(std::memory_order_acquire) == 0) co_return Result<>();
    Pointer existing = topic.lock();
    if (existing == nullptr) co_return tambour::detail::base::failure(ECANCELED);
    if (existing->has_room()) co_return existing->send(excepted, std::move(message));
    existing.reset();
    const Result<int> changed = co_await room.changed();
    const bool is_empty = shared->subscribers.load(std::memory_order_acquire) == 0;
    if (!changed && !is_empty) co_return tambour::detail::base::failure(ECANCELED);
  }
}

std::size_t Topic::backlog_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const auto& shard : shards_) bytes += shard->held_bytes();
  return bytes;
}

void Topic::add_to(WebSocketTopicStats& stats) const noexcept {
  stats.published += published_.load(std::memory_order_relaxed);
  stats.delayed += delayed_.load(std::memory_order_relaxed);
  stats.sent += shared_->sent.load(std::memory_order_relaxed);
  stats.dropped += shared_->dropped.load(std::memory_order_relaxed);
  stats.closed += shared_->closed.load(std::memory_order_relaxed);
}

Result<> TopicMap::subscribe(WebSocket& socket, std::string_view name) {
  Connection* const connection = Access::connection_of(socket);
  if (connection == nullptr || !connection->is_open() || connection->has_begun_close())
    return tambour::detail::base::failure(EBADF);
  if (name.size() > options_.name_bytes_max) return tambour::detail::base::failure(ENAMETOOLONG);
  const std::scoped_lock lock(mutex_);
  auto found = topics_.find(name);
  if (found != topics_.end() && found->second->id_of(socket) != 0) return {};
  if (connection->count_subscribers() >= options_.subscriptions_max)
    return tambour::detail::base::failure(ENOBUFS);
  const bool is_new = found == topics_.end();
  if (is_new && topics_.size() >= options_.topics_max)
    return tambour::detail::base::failure(ENOBUFS);
  if (is_new) found = add(name);
  try {
    found->second->subscribe(socket);
  } catch (...) {
    if (is_new) topics_.erase(found);
    throw;
  }
  return {};
}

TopicMap::Topics::iterator TopicMap::add(std::string_view name) {
  WebSocketTopicOptions options;
  if (options_.options_for) options = options_.options_for(name);
  auto topic = std::make_shared<Topic>(loops_, options);
  topic->set_on_empty([map = weak_from_this(), name = std::string(name)] {
    if (const auto existing = map.lock()) existing->remove_if_empty(name);
  });
  return topics_.emplace(name, std::move(topic)).first;
}

void TopicMap::remove_if_empty(std::string_view name) noexcept {
  Topic::Pointer removed;  // Destroyed without the lock.
  const std::scoped_lock lock(mutex_);
  const auto found = topics_.find(name);
  if (found == topics_.end() || found->second->size() > 0) return;
  removed = std::move(found->second);
  removed->add_to(ended_);
  topics_.erase(found);
}

Topic::Pointer TopicMap::find(std::string_view name) const noexcept {
  const std::scoped_lock lock(mutex_);
  const auto found = topics_.find(name);
  return found != topics_.end() ? found->second : nullptr;
}

std::size_t TopicMap::size() const noexcept {
  const std::scoped_lock lock(mutex_);
  return topics_.size();
}

WebSocketTopicStats TopicMap::stats() const noexcept {
  const std::scoped_lock lock(mutex_);
  WebSocketTopicStats stats = ended_;
  for (const auto& [name, topic] : topics_) topic->add_to(stats);
  return stats;
}

void TopicMap::close() noexcept {
  Topics topics;  // Destroyed without the lock.
  const std::scoped_lock lock(mutex_);
  topics.swap(topics_);
}

}  // namespace detail::websocket

namespace {
using detail::websocket::Topic;
using detail::websocket::TopicMap;

/// If there is no topic, it has no subscribers: the message is discarded. `excepted` may be null.
Result<> try_publish_to(const Topic::Pointer& topic, const WebSocket* excepted,
                        WebSocketMessage message) {
  if (topic == nullptr) return {};
  return topic->try_publish(excepted != nullptr ? topic->id_of(*excepted) : 0, std::move(message));
}

Task<Result<>> discard() { co_return Result<>(); }

Task<Result<>> publish_to(const Topic::Pointer& topic, const WebSocket* excepted,
                          WebSocketMessage message) {
  if (topic == nullptr) return discard();
  const std::uint64_t excepted_id = excepted != nullptr ? topic->id_of(*excepted) : 0;
  return Topic::publish(topic, excepted_id, std::move(message));
}
}  // namespace

WebSocketTopicOptions::WebSocketTopicOptions() noexcept = default;
WebSocketTopicsOptions::WebSocketTopicsOptions() noexcept = default;

WebSocketTopic::WebSocketTopic(EventLoop& loop, WebSocketTopicOptions options)
    : topic_(std::make_shared<Topic>(std::vector<EventLoop*>{&loop}, options)) {}
WebSocketTopic::WebSocketTopic(LoopGroup& loops, WebSocketTopicOptions options)
    : topic_(std::make_shared<Topic>(detail::websocket::loops_of(loops), options)) {}
WebSocketTopic::~WebSocketTopic() { topic_->close(); }

void WebSocketTopic::subscribe(WebSocket& socket) { topic_->subscribe(socket); }
void WebSocketTopic::unsubscribe(WebSocket& socket) noexcept { topic_->unsubscribe(socket); }
bool WebSocketTopic::is_subscribed(const WebSocket& socket) const noexcept {
  return topic_->id_of(socket) != 0;
}
Result<> WebSocketTopic::try_publish(WebSocketMessage message) {
  return try_publish_to(topic_, nullptr, std::move(message));
}
Result<> WebSocketTopic::try_publish_except(const WebSocket& excepted, WebSocketMessage message) {
  return try_publish_to(topic_, &excepted, std::move(message));
}
Task<Result<>> WebSocketTopic::publish(WebSocketMessage message) {
  return publish_to(topic_, nullptr, std::move(message));
}
Task<Result<>> WebSocketTopic::publish_except(const WebSocket& excepted, WebSocketMessage message) {
  return publish_to(topic_, &excepted, std::move(message));
}
std::size_t WebSocketTopic::size() const noexcept { return topic_->size(); }
std::size_t WebSocketTopic::backlog_bytes() const noexcept { return topic_->backlog_bytes(); }
WebSocketTopicStats WebSocketTopic::stats() const noexcept {
  WebSocketTopicStats stats;
  topic_->add_to(stats);
  return stats;
}

WebSocketTopics::WebSocketTopics(EventLoop& loop, WebSocketTopicsOptions options)
    : topics_(std::make_shared<TopicMap>(std::vector<EventLoop*>{&loop}, std::move(options))) {}
WebSocketTopics::WebSocketTopics(LoopGroup& loops, WebSocketTopicsOptions options)
    : topics_(std::make_shared<TopicMap>(detail::websocket::loops_of(loops), std::move(options))) {}
WebSocketTopics::~WebSocketTopics() { topics_->close(); }

Result<> WebSocketTopics::subscribe(WebSocket& socket, std::string_view name) {
  return topics_->subscribe(socket, name);
}
void WebSocketTopics::unsubscribe(WebSocket& socket, std::string_view name) noexcept {
  if (const Topic::Pointer topic = topics_->find(name)) topic->unsubscribe(socket);
}
Result<> WebSocketTopics::try_publish(std::string_view name, WebSocketMessage message) {
  return try_publish_to(topics_->find(name), nullptr, std::move(message));
}
Result<> WebSocketTopics::try_publish_except(const WebSocket& excepted, std::string_view name,
                                             WebSocketMessage message) {
  return try_publish_to(topics_->find(name), &excepted, std::move(message));
}
Task<Result<>> WebSocketTopics::publish(std::string_view name, WebSocketMessage message) {
  return publish_to(topics_->find(name), nullptr, std::move(message));
}
Task<Result<>> WebSocketTopics::publish_except(const WebSocket& excepted, std::string_view name,
                                               WebSocketMessage message) {
  return publish_to(topics_->find(name), &excepted, std::move(message));
}
std::size_t WebSocketTopics::size() const noexcept { return topics_->size(); }
std::size_t WebSocketTopics::size(std::string_view name) const noexcept {
  const Topic::Pointer topic = topics_->find(name);
  return topic != nullptr ? topic->size() : 0;
}
WebSocketTopicStats WebSocketTopics::stats() const noexcept { return topics_->stats(); }

}  // namespace tambour::http
