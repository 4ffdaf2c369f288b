// A program of GTK with an HTTP client inside: the main loop of GTK runs an EventLoop.
#include <gtk/gtk.h>

#include <cstdlib>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include <tambour/adapters/glib.h>
#include <tambour/tambour.h>

#include "adapters/hosts/display.h"
#include "adapters/hosts/host_scenario.h"
#include "adapters/hosts/http_in_host.h"

namespace tambour::gtk_test {
namespace {

using namespace std::chrono_literals;

test::RunHost runner() {
  return [](const std::function<bool()>& done) {
    const TimePoint limit = Clock::now() + 60s;
    while (!done()) {
      if (Clock::now() > limit) return false;
      gtk_main_iteration();
    }
    return true;
  };
}

/// A window with a label, whose text is a number.
class Window {
 public:
  Window() : window_(gtk_window_new(GTK_WINDOW_TOPLEVEL)), label_(gtk_label_new("0")) {
    gtk_container_add(GTK_CONTAINER(window_), label_);
    const auto count = +[](GtkWidget*, cairo_t*, gpointer paints) -> gboolean {
      ++*static_cast<int*>(paints);
      return FALSE;
    };
    g_signal_connect(label_, "draw", G_CALLBACK(count), &paints_);
    gtk_widget_show_all(window_);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() { gtk_widget_destroy(window_); }

  void show(int number) { gtk_label_set_text(GTK_LABEL(label_), std::to_string(number).c_str()); }
  [[nodiscard]] bool is_shown() const { return gtk_widget_get_mapped(window_) != FALSE; }
  [[nodiscard]] int paints() const { return paints_; }

 private:
  GtkWidget* window_;
  GtkWidget* label_;
  int paints_ = 0;
};

TEST(GtkHosts, windows_are_painted_and_idle_with_an_http_client_inside) {
  if (!test::Display::shared().is_open()) GTEST_SKIP() << "Xvfb is not installed";
  // Without the bus of accessibility, which is another program.
  ::setenv("NO_AT_BRIDGE", "1", 1);
  ::setenv("GDK_BACKEND", "x11", 1);
  ASSERT_TRUE(gtk_init_check(nullptr, nullptr));
  Window window;
  EventLoop loop;
  adapters::GlibHost host(loop);
  ASSERT_TRUE(host.start());
  ASSERT_TRUE(runner()([&] { return window.is_shown() && window.paints() > 0; }));
  const int paints_before = window.paints();
  struct Ticks {
    Window& window;
    int count = 0;
    int changes = 0;
    int paints = 0;
  } ticks{window};
  // The window changes while requests are in flight, and not later, when the test measures what an
  // idle program costs. Each change waits for the painting of the one before it: on a busy machine,
  // one painting could show two.
  const guint timer = g_timeout_add(
      50,
      [](gpointer data) -> gboolean {
        auto& self = *static_cast<Ticks*>(data);
        ++self.count;
        if (self.changes < 4 && self.window.paints() > self.paints) {
          self.paints = self.window.paints();
          self.window.show(++self.changes);
        }
        return G_SOURCE_CONTINUE;
      },
      &ticks);
  test::expect_http_client_in_host(loop, runner(), ticks.count);
  EXPECT_TRUE(runner()([&] { return window.paints() >= paints_before + 3; }));
  g_source_remove(timer);
  // A timer of the loop changes the window too.
  const int paints = window.paints();
  Timer change(loop, [&] { window.show(100); });
  change.start(5ms);
  EXPECT_TRUE(runner()([&] { return window.paints() > paints; }));
}

}  // namespace
}  // namespace tambour::gtk_test
