// Tasks posted to a loop by other threads, after evpp's task-queue benchmarks.
//
// Pattern `stream`: producers post as fast as they can to one loop. The loop runs on
// pinned_processor(), the producers on the other processors. Pattern `ring`: each thread has one
// loop, and one task is posted from loop to loop; nearly all of the time is the kernel waking
// threads.
//
// A task is a function object of two words and counts itself.
#pragma once

#include <barrier>
#include <concepts>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "common/processor.h"
#include "common/program.h"

namespace bench {

/// The communication pattern; counts tasks and ends the run.
class Pattern {
 public:
  virtual ~Pattern() = default;
  virtual void on_task(int loop) = 0;
};

struct Task {
  Pattern* pattern;
  int loop;
  void operator()() const { pattern->on_task(loop); }
};

/// The interface of a subject, which is constructed in the thread that runs it.
template <class Subject>
concept PostSubject = std::default_initializable<Subject> && requires(Subject subject, Task task) {
  /// Callable from any thread.
  subject.post(task);
  /// Runs tasks until stop().
  subject.run();
  /// Called from inside a task.
  subject.stop();
  { subject.info() } -> std::same_as<SubjectInfo>;
};

struct PostOptions {
  int producers = 0;  ///< Number of loops if `ring`.
  int tasks = 0;      ///< Total number of tasks; number of posts if `ring`.
  bool ring = false;
  int iterations = 1;
};

/// Exits with status 2 and a message if the arguments are invalid, with status 0 after --help.
PostOptions parse_post_options(int argc, char** argv);

/// Elapsed time, and processor time of all threads, per task.
class Stopwatch {
 public:
  void start() {
    cpu_ = own_cpu_ns();
    begin_ = now_ns();
  }
  void stop() {
    took_ = now_ns() - begin_;
    cpu_ = own_cpu_ns() - cpu_;
  }
  void report_to(Report& report, int tasks) const {
    report.add({{{"post_ns", double(took_) / tasks}, {"cpu_ns", double(cpu_) / tasks}}});
  }

 private:
  std::int64_t begin_ = 0, took_ = 0, cpu_ = 0;
};

template <PostSubject Subject>
class Stream final : public Pattern {
 public:
  SubjectInfo measure(const PostOptions& options, Report& report) {
    left_ = options.tasks;
    std::vector<std::jthread> producers;
    std::barrier ready(options.producers + 1);
    for (int i = 0; i < options.producers; ++i) {
      const int share = options.tasks / options.producers + (i < options.tasks % options.producers);
      producers.emplace_back([this, &ready, share] {
        move_to_another_processor();
        ready.arrive_and_wait();
        for (int task = 0; task < share; ++task) subject_.post(Task{this, 0});
      });
    }
    watch_.start();
    ready.arrive_and_wait();
    subject_.run();
    if (left_ != 0) fail("the loop stopped before its last task");
    watch_.report_to(report, options.tasks);
    return subject_.info();
  }

  void on_task(int) override {
    if (--left_ > 0) return;
    watch_.stop();
    subject_.stop();
  }

 private:
  // Avoids false sharing: producers read the subject, each task writes the counter.
  alignas(64) Subject subject_;
  alignas(64) int left_ = 0;
  Stopwatch watch_;
};

template <PostSubject Subject>
class Ring final : public Pattern {
 public:
  SubjectInfo measure(const PostOptions& options, Report& report) {
    left_ = options.tasks;
    loops_.resize(options.producers);
    SubjectInfo info;
    std::barrier ready(options.producers);
    {
      std::vector<std::jthread> threads;
      for (int i = 1; i < options.producers; ++i) {
        threads.emplace_back([this, &ready, i] {
          // With two processors, every post crosses from one processor to the other.
          if (i % 2 == 1) move_to_another_processor();
          Subject subject;
          loops_[i] = &subject;
          ready.arrive_and_wait();
          subject.run();
          ready.arrive_and_wait();
        });
      }
      Subject subject;
      loops_[0] = &subject;
      info = subject.info();
      ready.arrive_and_wait();
      watch_.start();
      subject.post(Task{this, 0});
      subject.run();
      ready.arrive_and_wait();
    }
    watch_.report_to(report, options.tasks);
    return info;
  }

  void on_task(int loop) override {
    if (left_ == 0) return loops_[loop]->stop();
    if (--left_ > 0) {
      const int next = loop + 1 == int(loops_.size()) ? 0 : loop + 1;
      return loops_[next]->post(Task{this, next});
    }
    watch_.stop();
    for (int i = 0; i < int(loops_.size()); ++i) loops_[i]->post(Task{this, i});
  }

 private:
  std::vector<Subject*> loops_;
  Stopwatch watch_;
  int left_ = 0;  ///< Accessed only by the thread that runs the task.
};

/// The main function of a post program.
template <PostSubject Subject>
int run_post(int argc, char** argv) {
  const PostOptions options = parse_post_options(argc, argv);
  pinned_processor();
  Report report;
  SubjectInfo info;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    feed_watchdog();
    info = options.ring ? std::make_unique<Ring<Subject>>()->measure(options, report)
                        : std::make_unique<Stream<Subject>>()->measure(options, report);
  }
  report.print(info);
  return 0;
}

}  // namespace bench
