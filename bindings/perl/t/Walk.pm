# Runs walk.pl on a model of AnyEvent and compares traces section by section.
package Walk;

use strict;
use warnings;

use Test::More;

sub has {
    my ($module) = @_;
    return eval "require $module; 1";
}

sub walk {
    my ($model) = @_;
    local $ENV{PERL_ANYEVENT_MODEL} = $model;
    delete local @ENV{grep /^(AE|PERL_ANYEVENT)_(?!MODEL)/, keys %ENV};
    my @include = map { "-I$_" } @INC;
    open my $walk, "-|", $^X, @include, "t/walk.pl" or die "cannot start the walk: $!";
    chomp(my @lines = <$walk>);
    close $walk;
    is $?, 0, "walk.pl succeeds on $model";
    return @lines;
}

sub expected {
    open my $file, "<", "t/walk.expected" or die "t/walk.expected: $!";
    chomp(my @lines = <$file>);
    return @lines;
}

sub compare {
    my ($got, $expected) = @_;
    my ($ours, $theirs) = (sections(@$got), sections(@$expected));
    is_deeply $ours->{$_}, $theirs->{$_}, $_ for sort keys %$theirs;
    is_deeply [sort keys %$ours], [sort keys %$theirs], "all sections";
}

sub sections {
    my (%sections, $name);
    for (@_) {
        if (/^== (.*)/) { $sections{$name = $1} = [] } else { push @{$sections{$name}}, $_ }
    }
    return \%sections;
}

1
