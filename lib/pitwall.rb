# frozen_string_literal: true

# Already there when the command records this process, perhaps from another installed version: that one stays.
require_relative "pitwall/version" unless defined?(Pitwall::VERSION)
require_relative "pitwall/errors" unless defined?(Pitwall::Error)
require_relative "pitwall/native" unless defined?(Pitwall) && Pitwall.respond_to?(:load_native!)
# All of it now: a program may want to start in a signal handler, where nothing can be required any more.
require_relative "pitwall/collect/session" unless defined?(Pitwall::Collect::Session)
require_relative "pitwall/collect/by_signal" unless defined?(Pitwall::Collect::BySignal)
require_relative "pitwall/collect/control" unless defined?(Pitwall::Collect::Control)
require_relative "pitwall/collect/trace_options" unless defined?(Pitwall::Collect::TraceOptions)

# The Ruby side of Pitwall: what a program calls to record itself. Loads nothing but core Ruby and the extension.
#
#   require "pitwall"
#   result = Pitwall.profile(record: "checkout.pit") { Order.checkout(cart) }
#   result.path     # => "/app/checkout.pit"; look at it with `pitwall report checkout.pit`
module Pitwall
  # What a recording ended with. `path` of the file, `counters` (Integers by name: ticks, captures,
  # missed_ticks, dropped… as in STAT of doc/record-format.md, and the file's bytes), `value` of the block.
  Result = Struct.new(:path, :counters, :value) do
    # The report of the file, as `pitwall report` prints it. Needs the gem pitwall, which the recording itself did not.
    # @raise [CannotMeasure] when that gem isn't there
    #: () -> String
    def report
      require "stringio"
      load_gem("pitwall/cli")
      text = StringIO.new
      CLI.run(["report", path], out: text, err: text)
      text.string
    end

    # One line; in irb, where the value of a block is printed, the report.
    #: () -> String
    def inspect
      line = "#<Pitwall::Result #{path}>"
      return line unless defined?(::IRB) && ::IRB.respond_to?(:CurrentContext) && ::IRB.CurrentContext

      "#{line}\n#{report}"
    rescue CannotMeasure
      "#{line} (pitwall report #{path} shows it)"
    end

    # irb prints by this.
    #: (untyped) -> void
    def pretty_print(printer) = printer.text(inspect)

    # Where objects were allocated, of a recording that counted them ({Pitwall.allocations}): rows with path, line, class, type, method,
    # count, old, freed, total_age, min_age, max_age (in collections), bytes, retained, retained_bytes, gc_ns (a model's figure); heaviest first.
    # Reads the recording with the gem pitwall, which the recording itself did not need.
    # @param by [Array<Symbol>] of :path, :line, :class, :type, :method, :stack
    # @raise [CannotMeasure] when that gem isn't there
    # @return [Array<Analyse::Allocations::Row>] without those that stand for no place in the program
    #: (?by: Array[Symbol], ?sort: Symbol) -> Array[untyped]
    def sites(by: [:path, :line, :class], sort: :count) = counted.rows(by: by, sort: sort).reject(&:special)

    # Objects that the block allocated, without those that the VM makes for itself.
    # @raise [CannotMeasure] as above
    #: () -> Integer
    def objects = counted.objects

    private

    def counted
      @counted ||= begin
        load_gem("pitwall/record", "pitwall/analyse")
        Pitwall::Analyse::Allocations.new(Pitwall::Record.read(path).segments)
      end
    end

    def load_gem(*files)
      files.each { |file| require file }
    rescue LoadError
      raise CannotMeasure, "#{path} is read by the gem pitwall, which is not there: gem install pitwall, or pitwall report #{path}"
    end
  end

  class << self
    # Records the block with the sampler: wall and CPU time of every thread.
    #
    # record:       the file; default a dated one in `.pitwall/` of the working directory.
    # interval_ns:  time between two samples of a running thread, 100_000 (100 us) to 1_000_000_000 (1 s); default 1 ms.
    # mode:         :auto (default) is :outside with Ruby 3.2 and newer where a core is spare, else :signal. :outside (3.1 too): a thread on
    #               another core reads the stacks while the program runs on; :signal: a timer interrupts each thread; :safepoint: Ruby
    #               calls at its safepoints only. The first and the last suit programs that can't bear interrupted system calls.
    # signal:       "URG" (default) or "WINCH".
    # flush_ns:     what a killed process loses at most; default 1 s.
    #
    # Inside a process that `pitwall profile -- …` already records, the block simply runs and belongs to that recording.
    #
    # @return [Result]
    # @raise [StateError] a recording is already running
    # @raise [UsageError] a setting out of range or a file that can't be written
    # @raise [CannotMeasure] the signal is taken by the program, no extension for this Ruby, or not in the main Ractor
    def profile(record: nil, **settings)
      if session.recording? && session.whole_command?
        value = yield
        return Result.new(session.path, nil, value)
      end

      start(record: record, **settings)
      begin
        value = yield
      ensure
        ended = stop if recording?
      end
      ended.value = value
      ended
    end

    # Traces the block: every call and return of methods, blocks and C functions on every thread, exactly; see doc/tracing.md.
    #
    # record:     the file; default a dated one in `.pitwall/` of the working directory.
    # cpu:        CPU time as well; default true.
    # objects:    how many objects; default true. bytes: the bytes of their slots; default false.
    # gc:         "as-is" (default), "off" or "defer" (with the clock stopped), up to gc_memory: bytes; default 1 GiB.
    # path, class, only_under:  a String or a list: only files (globs), classes, or what runs under methods ("Shop::Cart#sum").
    # depth:      only so many calls deep.
    #
    # What is left out counts as its caller's own. Inside a process that a command already records, the block simply runs.
    #
    # @return [Result]
    # @raise [StateError] a recording is already running
    # @raise [UsageError] an unknown option or a file that can't be written
    # @raise [CannotMeasure] a Ruby whose stacks Pitwall does not walk itself, or not in the main Ractor
    def trace(record: nil, **options, &block)
      profile(record: record, mode: "none", collectors: { "trace" => Collect::TraceOptions.check(options) }, &block)
    end

    # Counts every object that the process allocates while the block runs, by the place that allocated it.
    #
    # record:  the file; default as above. stacks: whether to keep whole stacks. one_in: follow one object in so many.
    # growth:  whether to record what lives over time, for `pitwall report FILE --view growth`; holders: and who holds what grows, at the end.
    # mode:    "none" (default), or what `profile` takes, to have samples in the same recording.
    #
    #   result = Pitwall.allocations { Order.checkout(cart) }
    #   result.sites.first(3).each { |site| puts "#{site.path}:#{site.line} #{site[:class]} #{site.count}" }
    #
    # @return [Result]
    # @raise as `profile`
    def allocations(record: nil, stacks: false, one_in: 1, growth: false, holders: false, mode: "none", **settings, &block)
      raise UsageError, "one_in #{one_in.inspect}: choose a whole number from 1" unless one_in.is_a?(Integer) && one_in.between?(1, 1_000_000_000)

      collectors = { "allocations" => { "stacks" => stacks ? "1" : "0", "one_in" => one_in.to_s, "growth" => growth ? "1" : "0", "holders" => holders ? "1" : "0" } }
      profile(record: record, mode: mode, collectors: collectors, **settings, &block)
    end

    # Records every file-system call that the process's Ruby threads make while the block runs, with the Ruby lines that make them.
    #
    # record:  the file; default as above. io: also reads, writes and network calls. stacks: whether to keep the lines.
    # count:   totals only, no rows.
    #
    # Other threads that live when it begins are seen from when they next wait for the GVL (Ruby 3.1: not at all). On Linux (5.11 and newer), x86-64.
    # Inside a process that a command already records, the block simply runs.
    #
    # @return [Result]
    # @raise [CannotMeasure] the kernel, or a seccomp filter, doesn't let calls be seen
    # @raise as `profile`
    def syscalls(record: nil, io: false, stacks: true, count: false, **settings, &block)
      options = { "io" => io, "stacks" => stacks, "count" => count }.transform_values { |wanted| wanted ? "1" : "0" }
      profile(record: record, mode: "none", collectors: { "syscalls" => options }, **settings, &block)
    end

    # Starts recording; takes what `profile` takes. Raises what it raises.
    #: (?record: String?, **untyped) -> String
    def start(record: nil, **settings)
      session.start(path: record || Collect::Place.default, **settings)
      session.path
    end

    # Stops recording and closes the file.
    # @return [Result] with no value
    # @raise [StateError] not recording, or another thread is starting or stopping it
    # @raise [CannotMeasure] not in the main Ractor
    def stop
      Result.new(session.path, session.stop, nil)
    end

    # Stops taking samples until `resume`; the time between is in no view.
    # @raise [StateError] not recording
    def pause = session.pause

    # @raise [StateError] not paused
    def resume = session.resume

    # Runs the block under labels: what is sampled meanwhile, on this thread or fiber, carries them, and every view can be asked for
    # one of them. Labels of blocks around stay, one of the same name is replaced, nil takes it away.
    #
    #   Pitwall.label(route: "orders#show", tenant: "acme") { … }
    #   pitwall report x.pit --view labels    or    pitwall report x.pit --label route=orders#show
    #
    # Values are kept in the recording as their to_s, cut at 200 characters. A recording holds 4096 different sets (16,384 with a label `test`); what comes
    # then is "(other)", and the report says so. Fibers that are created inside have the labels as well (Ruby 3.2 and newer);
    # threads have not, as they may be a pool's and outlive the block: `labels = Pitwall.labels`, and there `Pitwall.label(**labels) { … }`.
    # When nothing is recorded as the block begins, or not in the main Ractor, it simply runs.
    #
    # @return what the block returns
    #: (**untyped) { () -> untyped } -> untyped
    def label(**labels, &block) = Collect::Labels.with(labels, &block)

    # The same for a piece of work of which the recording is to know when it began and ended, and in which thread: a request, a job. The
    # slowest are in `pitwall report x.pit --view requests`. @return what the block returns
    #: (**untyped) { () -> untyped } -> untyped
    def request(**labels, &block) = Collect::Labels.with(labels, marked: true, &block)

    # Changes labels of the innermost block of `label` or `request` around, until its end: for what is only known later.
    #: (**untyped) -> nil
    def relabel(**labels) = Collect::Labels.change(labels)

    # The labels of the running fiber.
    #: () -> Hash[Symbol, String]
    def labels = Collect::Labels.current

    # Records from now on, at a low rate, into files of a folder that stays below a size; see doc/servers.md. A thread of its own looks every
    # second. Forked workers go on in files of their own. Call it once, where the server starts.
    #
    # dir:        the folder; made when it isn't there, as are those around it. `pitwall report DIR` reads all of it.
    # rate:       samples a second of each running thread, 1 to 10_000; default 100.
    # rotate:     seconds (a number, or ActiveSupport's duration) after which the next file begins; default 600, with growth what `keep` is.
    # keep:       seconds that files are kept; default a day.
    # max_bytes:  what all files together may take, those of all processes; default 256 MiB, at least 16 MiB. The oldest go first.
    # mode, signal:  as `profile`; without a mode given, signal from Ruby 3.2 on, safepoint on 3.1; without a signal given, the first one that is free.
    # gc:         whether collections are recorded and told apart in stacks; default true from Ruby 3.3 on, where it costs nothing. On 3.1 and 3.2
    #             every allocation takes longer for it; without, their time is with the code that ran.
    # growth:     whether to record also what lives over time, for `pitwall report DIR --view growth`; default false. Every allocation costs more.
    # one_in:     follow one object in so many, with growth; default 100.
    # control:    a port of 127.0.0.1 (0: a free one) that takes start, stop, rotate and status, with the token in the folder's file `token`.
    #
    # What goes wrong later (a full disk) is one line on standard error, and is tried again every minute; the program goes on.
    # Inside a process that a command already records it does nothing.
    #
    # @return [Integer, nil] the port of `control`
    # @raise [StateError] already recording
    # @raise [UsageError] a setting out of range, a folder that can't be written, a port that is taken, a token that others can read: nothing is recorded then
    #: (dir: String, ?control: Integer?, **untyped) -> Integer?
    def continuous(dir:, control: nil, **settings) = Collect::Continuous.begin(dir: dir, control: control, **settings)

    # Starts and stops recording when the process gets a signal: :toggle (default), :start, :stop or :rotate. Where {continuous} is on, it asks all
    # processes of its folder; else a file in `.pitwall/` begins or ends.
    # @raise [UsageError] no such signal
    # @raise [CannotMeasure] the program handles it: it is not taken away
    #: (String, ?Symbol) -> void
    def on_signal(name, action = :toggle) = Collect::BySignal.install(name, action)

    # Is this process being recorded (and not paused)?
    #: () -> bool
    def recording? = session.recording?

    private

    def session = Collect::Session
  end
end
