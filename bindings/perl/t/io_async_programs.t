# Programs that use IO::Async on Tambour: streams, processes, exceptions, and other watchers.
use strict;
use warnings;

use Test::More;

BEGIN {
    eval "require IO::Async::Loop; 1" or plan skip_all => "IO::Async is not installed";
    $ENV{IO_ASYNC_LOOP} = "Tambour";
}
use IO::Async::Function;
use IO::Async::Listener;
use IO::Async::Loop;
use IO::Async::Stream;
use IO::Async::Timer::Periodic;
use Tambour;

my $loop = IO::Async::Loop->new;
isa_ok $loop, "IO::Async::Loop::Tambour";
my $limit = $loop->watch_time (after => 60, code => sub { die "the test takes too long" });

{
    my $listener = IO::Async::Listener->new (on_stream => sub {
        my (undef, $stream) = @_;

        $stream->configure (on_read => sub {
            my ($self, $buffer, $eof) = @_;
            $self->write (uc $$buffer);
            $$buffer = "";
            0
        });
        $loop->add ($stream);
    });
    $loop->add ($listener);
    $listener->listen (addr => { family => "inet", socktype => "stream", ip => "127.0.0.1" })->get;
    my $client = $loop->connect (
        addr => {
            family => "inet", socktype => "stream", ip => "127.0.0.1",
            port   => $listener->read_handle->sockport,
        },
    )->get;
    my $stream = IO::Async::Stream->new (handle => $client, on_read => sub { 0 });
    $loop->add ($stream);
    for my $round (1 .. 20) {
        my $text = "hello $round\n" x $round;
        $stream->write ($text);
        is $stream->read_exactly (length $text)->get, uc $text, "echo $round";
    }
    $loop->remove ($_) for $stream, $listener;
}

{
    my ($ticks, $native) = (0, 0);
    my $timer = IO::Async::Timer::Periodic->new (interval => 0.005, on_tick => sub { $ticks++ });
    $timer->start;
    $loop->add ($timer);
    my $watcher = Tambour::timer 0.005, 0.005, sub { $native++ };
    $loop->loop_once while $ticks < 5 || $native < 5;
    $loop->remove ($timer);
    pass "watchers of Tambour run beside those of IO::Async";
}

{
    my $later;
    $loop->watch_time (after => 0.001, code => sub { die "on purpose\n" });
    $loop->watch_time (after => 0.005, code => sub { $later = 1 });
    my $died = eval { $loop->loop_once while !$later; 1 } ? "" : $@;
    is $died, "on purpose\n", "an exception leaves loop_once";
    $loop->loop_once while !$later;
    pass "the loop continues after an exception";
}

{
    my $future = $loop->run_process (command => [$^X, "-e", 'print "out"; exit 3']);
    my ($exit, $output) = $future->get;
    is $exit >> 8, 3, "status of a process";
    is $output, "out", "output of a process";
}

{
    my $function = IO::Async::Function->new (code => sub { $_[0] * 2 });
    $loop->add ($function);
    is $function->call (args => [21])->get, 42, "a function in a worker process";
    $function->stop;
    $loop->remove ($function);
}

{
    # A child with a loop of its own does not run the callbacks of its parent.
    pipe my $reader, my $writer or die "pipe: $!";
    my $calls = 0;
    my $id = $loop->watch_time (after => 0.001, code => sub { $calls++ });
    my $pid = $loop->fork (code => sub {
        my $own = IO::Async::Loop->new;
        my $done;
        $own->watch_time (after => 0.02, code => sub { $done = 1 });
        $own->loop_once while !$done;
        syswrite $writer, ref ($own) . " $calls";
        0
    });
    close $writer;
    my $line = <$reader>;
    is $line, "IO::Async::Loop::Tambour 0", "a loop in a child process";
    $loop->loop_once while !$calls;
    waitpid $pid, 0;
}

$loop->unwatch_time ($limit);
done_testing;
