# The benchmark of IO::Lambda's manual that AnyEvent's documentation repeats (section BENCHMARKS): an
# echo server and, one after the other, connections that send a line and wait for its echo. Server and
# client are one process, as in the original; all calls are non-blocking.
#
# --style sockets: watchers and system calls. --style handles: AnyEvent::Handle on both sides.
# connection_us: time per connection.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use AnyEvent;
use AnyEvent::Handle;
use AnyEvent::Socket;
use Getopt::Long;
use Subject;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use constant LINE => "can write? can read? done\n";
use constant LINE_BYTES_MAX => 1000;

GetOptions("connections=i" => \my $connections, "style=s" => \my $style,
           "iterations=i" => \my $iterations)
    or exit 2;
$connections //= 500;
my %styles = (
    sockets => {serve => \&serve_socket, talk => \&talk_on_socket},
    handles => {serve => \&serve_handle, talk => \&talk_on_handle},
);
my $functions = $styles{$style // "sockets"} or die "no such style: $style\n";

Subject::check();
my %open;
my $port;
my $guard = tcp_server "127.0.0.1", 0, $functions->{serve}, sub { $port = $_[2]; 128 };
# Exclude one-time costs, such as the loading of modules.
measure(20);
Subject::report(map { measure($connections) } 1 .. $iterations // 1);

sub measure {
    my ($count) = @_;
    my $over = AE::cv;
    my $left = $count;
    my $began = clock_gettime(CLOCK_MONOTONIC);
    my $next; $next = sub {
        $left-- or return $over->send;
        my $connecting; $connecting = tcp_connect "127.0.0.1", $port, sub {
            my ($socket) = @_ or die "connect: $!\n";
            undef $connecting;
            $functions->{talk}->($socket, $next);
        };
    };
    $next->();
    $over->recv;
    my $took = clock_gettime(CLOCK_MONOTONIC) - $began;
    undef $next;
    return {connection_us => $took / $count * 1e6};
}

sub serve_socket {
    my ($socket) = @_;
    my $input; $input = AE::io $socket, 0, sub {
        my $got = sysread $socket, my $bytes, LINE_BYTES_MAX;
        if ($got) {
            syswrite $socket, $bytes;
        } elsif (defined $got || !$!{EAGAIN}) {
            undef $input;
            close $socket;
        }
    };
}

sub talk_on_socket {
    my ($socket, $done) = @_;
    syswrite($socket, LINE) == length LINE or die "write: $!\n";
    my $echo = "";
    my $input; $input = AE::io $socket, 0, sub {
        my $got = sysread $socket, $echo, LINE_BYTES_MAX, length $echo;
        return if !defined $got && $!{EAGAIN};
        die "the server has closed the connection\n" if !$got;
        return if length $echo < length LINE;
        die "wrong echo: $echo\n" if $echo ne LINE;
        undef $input;
        close $socket;
        $done->();
    };
}

sub serve_handle {
    my ($socket) = @_;
    my $handle; $handle = AnyEvent::Handle->new(
        fh => $socket,
        on_error => sub { delete $open{$handle}; $_[0]->destroy },
        on_eof => sub { delete $open{$handle}; $_[0]->destroy },
        on_read => sub {
            my $bytes = delete $_[0]{rbuf};
            $_[0]->push_write($bytes);
        },
    );
    $open{$handle} = $handle;
}

sub talk_on_handle {
    my ($socket, $done) = @_;
    my $handle = AnyEvent::Handle->new(fh => $socket, on_error => sub { die "$_[2]\n" });
    $handle->push_write(LINE);
    $handle->push_read(line => sub {
        my ($self, $line) = @_;
        die "wrong echo: $line\n" if "$line\n" ne LINE;
        $self->destroy;
        undef $handle;
        $done->();
    });
}
