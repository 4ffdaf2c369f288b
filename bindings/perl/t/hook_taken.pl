# Run by lifetime.t: destroys a watcher after other code has replaced Perl's destroy hook.
use strict;
use warnings;

use Config;
use Tambour;

if ($Config{useithreads}) { require threads; require threads::shared }
my $alive = 1;
{
    package Guard;
    sub DESTROY { $alive = 0 }
}
my $guard = bless {}, "Guard";
my $timer = do { my $held = $guard; Tambour::timer 0, 0, sub { print "called\n" if $held } };
undef $guard;
undef $timer;
Tambour::run_ready();
print $alive ? "held\n" : "freed\n";
