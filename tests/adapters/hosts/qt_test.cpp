// A loop inside Qt's event loop, as its users write it, and Qt inside a loop through GLib. The
// window is on a display of the test (Xvfb); without Xvfb it needs none.
#include <QAbstractEventDispatcher>
#include <QApplication>
#include <QEventLoop>
#include <QLabel>
#include <QSocketNotifier>
#include <QTimer>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include <tambour/adapters/glib.h>
#include <tambour/tambour.h>

#include "adapters/hosts/display.h"
#include "adapters/hosts/host_scenario.h"
#include "adapters/hosts/http_in_host.h"

namespace tambour::qt_test {
namespace {

using namespace std::chrono_literals;

QApplication& application() {
  ::setenv("QT_QPA_PLATFORM", test::Display::shared().is_open() ? "xcb" : "offscreen", 1);
  static int argc = 1;
  static std::string name = "qt_test";
  static char* argv[] = {name.data(), nullptr};
  static QApplication instance(argc, argv);
  return instance;
}

/// Before Qt waits, it asks for the deadline.
class QtHost {
 public:
  explicit QtHost(EventLoop& loop) : loop_(loop), events_(*loop.fd(), QSocketNotifier::Read) {
    timer_.setSingleShot(true);
    timer_.setTimerType(Qt::PreciseTimer);
    QObject::connect(&timer_, &QTimer::timeout, [this] { loop_.run_ready(); });
    QObject::connect(&events_, &QSocketNotifier::activated, [this] { loop_.run_ready(); });
    QObject::connect(QAbstractEventDispatcher::instance(), &QAbstractEventDispatcher::aboutToBlock,
                     &timer_, [this] { set_timer(); });
  }

 private:
  void set_timer() {
    const TimePoint deadline = loop_.next_deadline();
    if (deadline == never) return timer_.stop();
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    timer_.start(std::clamp(left, 0ms, std::chrono::milliseconds(24h)));
  }

  EventLoop& loop_;
  QSocketNotifier events_;
  QTimer timer_;
};

test::RunHost runner() {
  return [](const std::function<bool()>& done) {
    const TimePoint limit = Clock::now() + 60s;
    QTimer end;
    end.start(60s);
    QEventLoop events;
    while (!done()) {
      if (Clock::now() > limit) return false;
      events.processEvents(QEventLoop::WaitForMoreEvents);
    }
    return true;
  };
}

TEST(QtHosts, run_a_loop) {
  application();
  EventLoop loop;
  const QtHost host(loop);
  test::expect_works_in_host(loop, runner());
  // Timers of Qt start timers of the loop.
  bool is_done = false;
  Timer timer(loop, [&] { is_done = true; });
  QTimer::singleShot(2ms, [&] { timer.start(3ms); });
  EXPECT_TRUE(runner()([&] { return is_done; }));
}

TEST(QtHosts, windows_stay_responsive_and_idle_with_an_http_client_inside) {
  application();
  QLabel window("0");
  window.show();
  EventLoop loop;
  const QtHost host(loop);
  int ticks = 0;
  QTimer timer;
  QObject::connect(&timer, &QTimer::timeout, [&] { ++ticks; });
  timer.start(50ms);
  // The window is painted when its text changes.
  Timer change(loop, [&] { window.setText(QString::number(ticks)); });
  change.start(200ms, 200ms);
  test::expect_http_client_in_host(loop, runner(), ticks);
  EXPECT_TRUE(window.isVisible());
  EXPECT_NE(window.text(), "0");
}

TEST(QtHosts, qt_on_glib_runs_in_a_loop) {
  application();
  const std::string dispatcher = QAbstractEventDispatcher::instance()->metaObject()->className();
  if (dispatcher.find("Glib") == std::string::npos)
    GTEST_SKIP() << "the event dispatcher is " << dispatcher;
  EventLoop loop;
  adapters::GlibContext glib(loop);
  ASSERT_TRUE(glib.start());
  std::string order;
  Timer second(loop, [&] {
    order += 'b';
    QTimer::singleShot(2ms, [&] {
      order += 'c';
      loop.stop();
    });
  });
  QTimer::singleShot(2ms, [&] {
    order += 'a';
    second.start(2ms);
  });
  Timer limit(loop, [&] { loop.stop(); });
  limit.start(30s);
  loop.run();
  EXPECT_EQ(order, "abc");
}

}  // namespace
}  // namespace tambour::qt_test
