// The asynchronous interface of hiredis on a loop: sends commands, and awaits the replies.
//
//   build/examples/hiredis /run/redis/redis.sock INCR counter
//
// hiredis says when it wants to read and to write; an FdWatcher tells it when it can.
#include <hiredis/hiredis.h>

#include <hiredis/async.h>

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

/// What hiredis waits for. hiredis destroys it, possibly inside the callback of its watcher.
class RedisEvents {
 public:
  static void attach(EventLoop& loop, redisAsyncContext& context) {
    context.ev.data = new RedisEvents(loop, context);
    context.ev.addRead = [](void* self) { of(self).set(of(self).interest_ | Events::read); };
    context.ev.delRead = [](void* self) { of(self).set(of(self).interest_ & ~Events::read); };
    context.ev.addWrite = [](void* self) { of(self).set(of(self).interest_ | Events::write); };
    context.ev.delWrite = [](void* self) { of(self).set(of(self).interest_ & ~Events::write); };
    context.ev.cleanup = [](void* self) { delete &of(self); };
    // From version 1.0 of hiredis, also scheduleTimer: a Timer that calls
    // redisAsyncHandleTimeout().
  }

 private:
  RedisEvents(EventLoop& loop, redisAsyncContext& context)
      : watcher_(loop, context.c.fd, Events::none, [&context](Events events) {
          // Reading may end the connection, and with it this watcher and `context`.
          if (has(events, Events::write))
            redisAsyncHandleWrite(&context);
          else
            redisAsyncHandleRead(&context);
        }) {}

  static RedisEvents& of(void* self) { return *static_cast<RedisEvents*>(self); }

  void set(Events interest) {
    interest_ = interest;
    if (interest == Events::none) return watcher_.stop();
    watcher_.set(interest);
    static_cast<void>(watcher_.start());
  }

  Events interest_ = Events::none;
  FdWatcher watcher_;
};

struct Command {
  explicit Command(EventLoop& loop) : replied(loop) {}
  TaskEvent replied;
  std::optional<std::string> reply;  ///< Empty if the connection was lost.
};

void store_reply(redisAsyncContext* /*context*/, void* reply, void* command) {
  auto& waiting = *static_cast<Command*>(command);
  if (const auto* const received = static_cast<redisReply*>(reply)) {
    waiting.reply = received->type == REDIS_REPLY_INTEGER ? std::to_string(received->integer)
                    : received->str != nullptr ? std::string(received->str, received->len)
                                               : "";
  }
  waiting.replied.set();
}

Task<> run_command(redisAsyncContext& context, std::vector<const char*> words) {
  const TaskContext& task = co_await this_task;
  // hiredis refers to the command until it has a reply, so this task waits without a time limit.
  // Ending the connection ends the wait: hiredis then calls store_reply() without a reply.
  Command command(*task.loop);
  Timer limit(*task.loop, [&context] { redisAsyncFree(&context); });
  redisAsyncCommandArgv(&context, &store_reply, &command, int(words.size()), words.data(), nullptr);
  limit.start(10s);
  static_cast<void>(co_await command.replied.wait());
  std::puts(command.reply.value_or("the connection was lost").c_str());
  if (command.reply) redisAsyncDisconnect(&context);
}

int main(int argc, char** argv) {
  if (argc < 3) return std::fputs("usage: hiredis SOCKET COMMAND...\n", stderr), 2;
  redisAsyncContext* const context = redisAsyncConnectUnix(argv[1]);
  if (context == nullptr || context->err != 0) return std::fputs("cannot connect\n", stderr), 1;
  EventLoop loop;
  RedisEvents::attach(loop, *context);
  spawn(loop, run_command(*context, std::vector<const char*>(argv + 2, argv + argc)));
  loop.run();
}
