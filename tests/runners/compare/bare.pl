# What a program does without any entry program: PID 1 of one container starts the bare interpreter again and again, each
# time in an empty /data and /tmp. It speaks sandbox.protocol=2, one run after another: after a record N it empties the
# folders and says W; then come the run's records, the program's frames, and a report with exitCode and signal.
# perl, since every Debian image has it.
#
# usage: perl bare.pl SCRIPT PROGRAM [ARGUMENT…]
use strict;
use warnings;
use POSIX qw(:sys_wait_h setsid uname);

my $GRACE_S = 0.25;
my %MEMFD_CREATE = (x86_64 => 319, aarch64 => 279);
my $MFD_CLOEXEC = 1;
my $run = 0;    # its id

sub read_exactly {
    my ($len) = @_;
    my $data = '';
    while (length($data) < $len) {
        my $n = sysread(STDIN, $data, $len - length($data), length($data));
        exit 0 unless $n;
    }
    return $data;
}

sub send_frame {
    my ($tag, $payload) = @_;
    my $frame = $tag . pack('NN', 4 + length $payload, $run) . $payload;
    for (my $at = 0; $at < length $frame;) {
        $at += syswrite(STDOUT, $frame, length($frame) - $at, $at) // exit 1;
    }
}

sub write_file {
    my ($path, $text) = @_;
    open(my $file, '>', $path) or die "$path: $!";
    print $file $text;
    close($file) or die "$path: $!";
}

# The same kind of file as the entry program's: in memory, without a name, to be read only, at its beginning.
sub open_input {
    my ($text) = @_;
    my $name = 'stdin';
    my $fd = syscall($MEMFD_CREATE{(uname())[4]}, $name, $MFD_CLOEXEC);
    die "memfd: $!" if $fd < 0;
    POSIX::write($fd, $text, length $text) if length $text;
    open(my $file, '<', "/proc/self/fd/$fd") or die "input: $!";
    POSIX::close($fd);
    return $file;
}

sub read_record {
    my ($tag, $len, $id) = unpack('aNN', read_exactly(9));
    return ($tag, $id, read_exactly($len - 4));
}

sub read_run {
    my ($script) = @_;
    my %job = (code => '', input => '', arguments => [], variables => []);
    while (1) {
        (my $tag, $run, my $payload) = read_record();
        if    ($tag eq 'C') { $job{code} .= $payload }
        elsif ($tag eq 'I') { $job{input} .= $payload }
        elsif ($tag eq 'X') {
            for (split /\0/, $payload) {
                push @{$job{arguments}}, substr($_, 1) if /^A/;
                push @{$job{variables}}, substr($_, 1) if /^E/;
            }
            write_file($script, $job{code});
            chmod 01600, $script;
            return \%job;
        }
    }
}

sub start {
    my ($job, $in, $out, $err, @command) = @_;
    my $pid = fork() // die "fork: $!";
    return $pid if $pid;
    setsid();
    for (@{$job->{variables}}) {
        my ($name, $value) = split /=/, $_, 2;
        $ENV{$name} = $value;
    }
    POSIX::dup2(fileno($in), 0);
    POSIX::dup2(fileno($out), 1);
    POSIX::dup2(fileno($err), 2);
    chdir '/data';
    eval { write_file('/proc/self/oom_score_adj', '1000') };
    exec { $command[0] } @command, @{$job->{arguments}} or POSIX::_exit(125);
}

# Passes output on until its end, or until the program has ended and what it left was silent for a while.
sub relay {
    my ($pid, %tag_of) = @_;
    my $status;
    while (%tag_of) {
        my $ready = '';
        vec($ready, $_, 1) = 1 for keys %tag_of;
        # Before the silence, which else might have ended with the program's last output.
        $status = $? if !defined $status && waitpid($pid, WNOHANG) == $pid;
        my $n = select($ready, undef, undef, $GRACE_S);
        last if $n <= 0 && defined $status;
        for my $fd (grep { $n > 0 && vec($ready, $_, 1) } keys %tag_of) {
            my $got = POSIX::read($fd, my $data, 65536);
            if ($got && $got > 0) { send_frame($tag_of{$fd}, $data) }
            else                  { delete $tag_of{$fd} }
        }
    }
    if (!defined $status) { waitpid($pid, 0); $status = $? }
    return $status;
}

my ($script, @command) = @ARGV;
$^F = 2;
while ((read_record())[0] eq 'N') {
    system('find', '/data', '/tmp', '/dev/shm', '-mindepth', '1', '-delete');
    $run = 0;
    send_frame('W', 'started');
    my $job = read_run($script);
    my $own = (lstat $script)[1];
    my $in = open_input($job->{input});
    pipe(my $out_read, my $out_write) or die "pipe: $!";
    pipe(my $err_read, my $err_write) or die "pipe: $!";
    my $pid = start($job, $in, $out_write, $err_write, @command);
    close($_) for $in, $out_write, $err_write;
    my $status = relay($pid, fileno($out_read) => 'O', fileno($err_read) => 'E');
    kill 'KILL', -1;
    1 while waitpid(-1, 0) > 0;
    unlink $script if ((lstat $script)[1] // 0) == $own;
    my $signal = $status & 127;
    send_frame('R', sprintf('{"exitCode":%d,"signal":%d}', $signal ? -1 : $status >> 8, $signal));
}
