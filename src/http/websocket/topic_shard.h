// The subscribers of a topic on one loop, and the messages that wait for them.
//
// A message has a node for each loop. It is in the queue of the loop until the loop takes it, and
// then in the backlog until each subscriber has got it, or has lost it. A subscriber that is not
// behind has no message in the backlog to wait for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <tambour/base/clock.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/intrusive_list.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/websocket_topic.h>
#include <tambour/loop/timer.h>
#include <tambour/threads/watch.h>

#include "http/websocket/connection.h"
#include "http/websocket/subscriber.h"
#include "server/fan_out_queue.h"

namespace tambour::http::detail::websocket {

/// A message as its subscribers get it.
struct TopicFrames {
  Buffer plain{};
  Buffer compressed{};    ///< Empty: no subscriber has compression.
  std::size_t bytes = 0;  ///< Of the message.
};

struct TopicMessage {
  static constexpr std::size_t overhead = 200;  ///< About the memory that it allocates.

  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return overhead + frames.plain.size() + frames.compressed.size();
  }

  TopicFrames frames;
  std::uint64_t excepted;  ///< The id of a subscriber that does not get it; 0: none.
  TopicMessage* next = nullptr;

  // In the backlog.

  std::uint64_t number = 0;
  TimePoint taken_at{};
  std::size_t waiting = 0;  ///< Subscribers for which it is the first message that they wait for.
};

/// What all shards of a topic share.
struct TopicShared {
  explicit TopicShared(WebSocketTopicOptions chosen) : options(chosen), room(0) {}

  /// Wakes the publishers that wait for room.
  void notify_publishers() noexcept {
    if (waiting_publishers.load(std::memory_order_seq_cst) > 0) room.set(0);
  }

  const WebSocketTopicOptions options;
  Watch<int> room;
  std::atomic<std::size_t> waiting_publishers{0};
  std::atomic<std::size_t> subscribers{0};
  std::atomic<std::size_t> compressing{0};  ///< Subscribers that get compressed messages.
  std::atomic<std::uint64_t> next_id{1};
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> dropped{0};
  std::atomic<std::uint64_t> closed{0};
  /// Invoked by the last subscriber that leaves, on its thread.
  std::function<void()> on_empty{};
};

/// Owned by the topic, by the task that takes the messages, and by the subscribers, so that it
/// lives until a loop has removed these.
class TopicShard final : public std::enable_shared_from_this<TopicShard> {
 public:
  TopicShard(EventLoop& loop, std::shared_ptr<TopicShared> shared) noexcept
      : loop_(loop), shared_(std::move(shared)) {}
  TopicShard(const TopicShard&) = delete;
  TopicShard& operator=(const TopicShard&) = delete;
  ~TopicShard();

  // On any thread.

  [[nodiscard]] EventLoop& loop() const noexcept { return loop_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  /// Bytes in the queue and in the backlog.
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return held_bytes_.load(std::memory_order_seq_cst);
  }
  /// Returns false if the queue is full because the loop is busy. Throws like EventLoop::post().
  [[nodiscard]] bool push(const TopicFrames& frames, std::uint64_t excepted);
  /// The topic is destroyed: drops the subscribers and the messages.
  void close() noexcept;

  // On the thread of the loop.

  void add(Connection& connection, const void* topic);
  /// 0 if the connection is no subscriber.
  [[nodiscard]] static std::uint64_t id_of(const Connection& connection,
                                           const void* topic) noexcept;
  static void remove(Connection& connection, const void* topic) noexcept;

 private:
  struct Member;
  using Queue = tambour::detail::server::FanOutQueue<TopicMessage>;
  using Behind = tambour::detail::IntrusiveList<Member>;

  void post_delivery();
  void run() noexcept;
  void deliver(Queue::Messages messages) noexcept;
  void advance(Member& member, TopicMessage* from) noexcept;
  void set_next(Member& member, TopicMessage* next) noexcept;
  void end_progress() noexcept;
  void trim() noexcept;
  void limit_backlog() noexcept;
  void close_front() noexcept;
  void check_deadline() noexcept;
  void leave(Member& member) noexcept;
  void take_out(Member& member) noexcept;
  void compact() noexcept;
  void clear() noexcept;

  EventLoop& loop_;
  std::shared_ptr<TopicShared> shared_;
  Queue queue_;
  std::atomic<std::size_t> held_bytes_{0};
  std::atomic<std::size_t> size_{0};
  std::atomic<bool> is_closed_{false};

  // Used on the thread of the loop.
  std::vector<Member*> members_;  ///< Null if it has left during a delivery.
  Behind behind_;
  TopicMessage* first_ = nullptr;  ///< The backlog.
  TopicMessage* last_ = nullptr;
  std::size_t backlog_bytes_ = 0;
  std::uint64_t last_number_ = 0;
  bool is_delivering_ = false;
  /// Only while there are subscribers: the thread of the loop must destroy it.
  std::optional<Timer> deadline_;
};

}  // namespace tambour::http::detail::websocket
