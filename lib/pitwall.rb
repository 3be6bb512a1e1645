# frozen_string_literal: true

# The command loads these files into a process that it records, perhaps from another installed version. Those stay.
require_relative "pitwall/version" unless defined?(Pitwall::VERSION)
require_relative "pitwall/errors" unless defined?(Pitwall::Error)
require_relative "pitwall/native" unless defined?(Pitwall) && Pitwall.respond_to?(:load_native!)
# Loads all files here. A program may start a recording in a signal handler, where `require` does not work.
require_relative "pitwall/collect/session" unless defined?(Pitwall::Collect::Session)
require_relative "pitwall/collect/by_signal" unless defined?(Pitwall::Collect::BySignal)
require_relative "pitwall/collect/control" unless defined?(Pitwall::Collect::Control)
require_relative "pitwall/collect/trace_options" unless defined?(Pitwall::Collect::TraceOptions)

# The calls by which a program records itself. They load core Ruby and the extension only.
#
#   require "pitwall"
#   result = Pitwall.profile(record: "checkout.pit") { Order.checkout(cart) }
#   result.path     # => "/app/checkout.pit"; `pitwall report checkout.pit` shows it
module Pitwall
  # The result of a recording.
  #
  # path:     "/app/checkout.pit"
  # counters: Integers by name: ticks, captures, missed_ticks, dropped… (STAT in doc/record-format.md), and bytes, the
  #           size of the file
  # value:    the value of the block
  Result = Struct.new(:path, :counters, :value) do
    # The report of the file, as `pitwall report` prints it. It needs the gem pitwall; recording does not.
    # @raise [CannotMeasure] the gem pitwall is not installed
    #: () -> String
    def report
      require "stringio"
      load_gem("pitwall/cli")
      text = StringIO.new
      CLI.run(["report", path], out: text, err: text)
      text.string
    end

    # One line. In irb, which prints the value of each expression, also the report.
    #: () -> String
    def inspect
      line = "#<Pitwall::Result #{path}>"
      return line unless defined?(::IRB) && ::IRB.respond_to?(:CurrentContext) && ::IRB.CurrentContext

      "#{line}\n#{report}"
    rescue CannotMeasure
      "#{line} (pitwall report #{path} shows it)"
    end

    # Called by irb to print the value.
    #: (untyped) -> void
    def pretty_print(printer) = printer.text(inspect)

    # The allocation sites of a recording that counted objects ({Pitwall.allocations}), the heaviest first. It needs the
    # gem pitwall; recording does not.
    #
    # A row has path, line, class, type, method, count, old, freed, total_age, min_age, max_age, bytes, retained,
    # retained_bytes and gc_ns. Ages are numbers of collections. gc_ns is an estimate by a model.
    # @param by [Array<Symbol>] any of :path, :line, :class, :type, :method, :stack
    # @return [Array<Analyse::Allocations::Row>] without rows that stand for no place in the program
    # @raise [CannotMeasure] the gem pitwall is not installed
    #: (?by: Array[Symbol], ?sort: Symbol) -> Array[untyped]
    def sites(by: [:path, :line, :class], sort: :count) = counted.rows(by: by, sort: sort).reject(&:special)

    # The number of objects that the block allocated, without objects that the VM makes for itself.
    # @raise [CannotMeasure] the gem pitwall is not installed
    #: () -> Integer
    def objects = counted.objects

    # The changes of a recording of caches ({Pitwall.caches}), the most costly first. It needs the gem pitwall;
    # recording does not.
    #
    # A row has kind ("method_added"), subject ("Shop::Cart#sum"), path, line and count. An increase of one of Ruby's
    # counters that has no line is a row with the counter's name as its kind and "" as its path.
    # @return [Array<Analyse::Caches::Finding>]
    # @raise [CannotMeasure] the gem pitwall is not installed
    #: () -> Array[untyped]
    def changes
      load_gem("pitwall/record", "pitwall/analyse")
      caches = Pitwall::Analyse::Caches.new(Pitwall::Record.read(path).segments)
      caches.changes.map(&:first) + caches.without_line
    end

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
      raise CannotMeasure, "#{path} is read by the gem pitwall, which is not there: " \
                           "gem install pitwall, or pitwall report #{path}"
    end
  end

  class << self
    # Records the block with the sampler: wall and CPU time of every thread.
    #
    # record:       the file; default: a dated file in `.pitwall/` of the working directory.
    # interval_ns:  time between two samples of a running thread, 100_000 (100 us) to 1_000_000_000 (1 s); default 1 ms.
    # mode:         :auto (default): :outside with Ruby 3.2 and newer if a core is spare, otherwise :signal.
    #               :outside (also with 3.1): a thread on another core reads the stacks while the program runs on.
    #               :signal: a timer interrupts each thread.
    #               :safepoint: stacks are read at Ruby's safepoints only.
    #               :outside and :safepoint suit programs that can't bear interrupted system calls.
    # native:       true records native frames beside Ruby's: MRI's own functions, C extensions, libraries
    #               (doc/native.md). Samples are then taken in mode :signal. Where native frames can't be read, the
    #               recording has none and says why. Default false.
    # signal:       "URG" (default) or "WINCH".
    # flush_ns:     the most recording time that a killed process loses, in ns; default 1 s.
    #
    # Inside a process that `pitwall profile -- …` already records, the block runs and belongs to that recording.
    #
    # @return [Result]
    # @raise [StateError] a recording is already running
    # @raise [UsageError] a setting out of range, or a file that can't be written
    # @raise [CannotMeasure] the program handles the signal, there is no extension for this Ruby, or this is
    #   not the main Ractor
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

    # Traces every call and return of methods, blocks and C functions in the block, on every thread (doc/tracing.md).
    #
    # record:     the file; default: a dated file in `.pitwall/` of the working directory.
    # cpu:        whether to measure CPU time; default true.
    # objects:    whether to count objects; default true.
    # bytes:      whether to add up the bytes of their slots; default false.
    # gc:         "as-is" (default), "off", or "defer": collect with the clock stopped.
    # gc_memory:  bytes up to which the heap may grow with "off" and "defer"; default 1 GiB.
    # path:       a glob or a list of globs: traces only these files.
    # class:      a name or a list: traces only these classes.
    # only_under: a method or a list ("Shop::Cart#sum"): traces only calls below these methods.
    # depth:      the most calls deep.
    #
    # The time of calls that are left out counts as their caller's own. Inside a process that a command already records,
    # the block runs, and these options have no effect.
    #
    # @return [Result]
    # @raise [StateError] a recording is already running
    # @raise [UsageError] an unknown option, or a file that can't be written
    # @raise [CannotMeasure] Pitwall cannot walk this Ruby's stacks itself, or this is not the main Ractor
    def trace(record: nil, **options, &block)
      profile(record: record, mode: "none", collectors: { "trace" => Collect::TraceOptions.check(options) }, &block)
    end

    # Counts every object that the process allocates while the block runs, by the place that allocated it.
    #
    # record:  the file; default: as `profile`.
    # stacks:  whether to keep whole stacks; default false.
    # one_in:  follows one object in so many; default 1.
    # growth:  whether to record the living objects over time, for `pitwall report FILE --view growth`; default false.
    # holders: whether to record, at the end, which objects hold the growing ones; default false.
    # mode:    "none" (default); a mode of `profile` adds samples to the recording.
    #
    #   result = Pitwall.allocations { Order.checkout(cart) }
    #   result.sites.first(3).each { |site| puts "#{site.path}:#{site.line} #{site[:class]} #{site.count}" }
    #
    # @return [Result]
    # @raise as `profile`
    def allocations(record: nil, stacks: false, one_in: 1, growth: false, holders: false, mode: "none", **settings,
                    &block)
      unless one_in.is_a?(Integer) && one_in.between?(1, 1_000_000_000)
        raise UsageError, "one_in #{one_in.inspect}: choose a whole number from 1"
      end

      flags = { "stacks" => stacks, "growth" => growth, "holders" => holders }.transform_values { |on| on ? "1" : "0" }
      collectors = { "allocations" => { **flags, "one_in" => one_in.to_s } }
      profile(record: record, mode: mode, collectors: collectors, **settings, &block)
    end

    # Records every file-system call of the process's Ruby threads while the block runs, with the calling Ruby lines. It
    # works on Linux 5.11 and newer, on x86-64.
    #
    # record:  the file; default: as `profile`.
    # io:      whether to record reads, writes and network calls as well; default false.
    # stacks:  whether to keep the Ruby lines; default true.
    # count:   whether to record totals only; default false.
    #
    # Calls of a thread that lives when the block begins are recorded after the thread has waited for the GVL once.
    # On Ruby 3.1 they are not recorded. Inside a process that a command already records, the block runs and
    # belongs to that recording.
    #
    # @return [Result]
    # @raise [CannotMeasure] the kernel or a seccomp filter does not allow to see the calls
    # @raise as `profile`
    def syscalls(record: nil, io: false, stacks: true, count: false, **settings, &block)
      options = { "io" => io, "stacks" => stacks, "count" => count }.transform_values { |on| on ? "1" : "0" }
      profile(record: record, mode: "none", collectors: { "syscalls" => options }, **settings, &block)
    end

    # Records which lines empty caches of the VM while the block runs: constants, methods and classes that change
    # (doc/caches.md).
    #
    # record: the file; default: as `profile`.
    # lines:  whether to compare the VM's counters at each line. true: always, so that each change has a line. false:
    #         never; object shapes, class variables and (Ruby 3.1) constants that an assignment sets are counted without
    #         a line. nil, the default: until a million lines in a row have changed nothing, and again once a counter
    #         was seen to change.
    # count:  whether only to count what Ruby counts, without lines; default false. Costs least.
    # definitions: whether to measure at the end what a definition of a method costs on the modules and classes that got
    #         methods; default false. It defines methods on them for a moment.
    #
    #   Pitwall.caches { 20.times { app.call(env) } }.report
    #
    # @return [Result]
    # @raise [CannotMeasure] the layout of this Ruby is not known to Pitwall
    # @raise as `profile`
    def caches(record: nil, lines: nil, count: false, definitions: false, **settings, &block)
      options = { "blame" => count ? "0" : "1", "lines" => { true => "1", false => "0" }.fetch(lines, "quiet"),
                  "definitions" => definitions ? "1" : "0" }
      profile(record: record, mode: "none", collectors: { "caches" => options }, **settings, &block)
    end

    # Says that the program has booted, for `pitwall caches --after boot`. The first request, job or test says so, too.
    #: () -> nil
    def booted
      Native.begin_work if recording?
      nil
    end

    # Starts recording. It takes the options of `profile` and raises the same errors.
    # @return [String] path of the recording
    #: (?record: String?, **untyped) -> String
    def start(record: nil, **settings)
      session.start(path: record || Collect::Place.default, **settings)
      session.path
    end

    # Stops recording and closes the file.
    # @return [Result] with no value
    # @raise [StateError] not recording, or another thread is starting or stopping it
    # @raise [CannotMeasure] this is not the main Ractor
    def stop
      Result.new(session.path, session.stop, nil)
    end

    # Stops recording until `resume`. No view has the time between.
    # @raise [StateError] not recording
    def pause = session.pause

    # @raise [StateError] not paused
    def resume = session.resume

    # Runs the block under labels. Samples of this thread or fiber in the block have the labels, and every view can
    # select one of them. Labels of the blocks around stay. A label of the same name is replaced; nil removes it.
    #
    #   Pitwall.label(route: "orders#show", tenant: "acme") { … }
    #   pitwall report x.pit --view labels    or    pitwall report x.pit --label route=orders#show
    #
    # The recording has the `to_s` of a value, cut at 200 characters. A recording has up to 4096 different sets of
    # labels (16,384 with a label `test`). Further sets count as "(other)", and the report says so.
    #
    # Fibers that are created in the block have the labels as well (Ruby 3.2 and newer). Threads do not, because they
    # may belong to a pool and outlive the block. To give a thread the labels: `labels = Pitwall.labels`, and in the
    # thread `Pitwall.label(**labels) { … }`.
    #
    # The block runs without labels if nothing is recorded when it begins, or outside the main Ractor.
    #
    # @return the block's value
    #: (**untyped) { () -> untyped } -> untyped
    def label(**labels, &block) = Collect::Labels.with(labels, &block)

    # Runs a request or a job under labels. The recording also has its beginning, its end and its thread. `pitwall
    # report x.pit --view requests` shows the slowest.
    # @return the block's value
    #: (**untyped) { () -> untyped } -> untyped
    def request(**labels, &block) = Collect::Labels.with(labels, marked: true, &block)

    # Changes labels of the innermost `label` or `request` block around, until its end. It serves labels that are not
    # known when the block begins.
    #: (**untyped) -> nil
    def relabel(**labels) = Collect::Labels.change(labels)

    # The labels of the running fiber.
    #: () -> Hash[Symbol, String]
    def labels = Collect::Labels.current

    # Records from now on, at a low rate, into files of a folder of limited size (doc/servers.md). A thread checks the
    # files every second. Forked workers write files of their own. To be called once, where the server starts.
    #
    # dir:        the folder. It is made if it does not exist, with the folders around it. `pitwall report DIR`
    #             reads all of its files.
    # rate:       samples a second of each running thread, 1 to 10_000; default 100.
    # rotate:     seconds (a number, or ActiveSupport's duration) after which the next file begins; default 600. With
    #             growth the default is the value of `keep`.
    # keep:       seconds that files are kept; default one day.
    # max_bytes:  the size limit of the files of all processes together; default 256 MiB, at least 16 MiB. The oldest
    #             files are removed first.
    # mode:       as `profile`; default: signal from Ruby 3.2 on, safepoint on 3.1.
    # signal:     as `profile`; default: the first signal that the program does not handle.
    # gc:         whether collections are recorded and shown in stacks; default true from Ruby 3.3 on, where it costs
    #             nothing. On 3.1 and 3.2 it makes every allocation slower. Without it, the time of a collection counts
    #             as the time of the code that ran.
    # native:     whether native frames are recorded too (doc/native.md), in mode signal; default false.
    # growth:     whether to record the living objects over time as well, for `pitwall report DIR --view growth`;
    #             default false. It makes every allocation slower.
    # one_in:     with growth, follows one object in so many; default 100.
    # control:    a port of 127.0.0.1 (0: a free port) that serves start, stop, rotate and status. Requests need the
    #             token in the folder's file `token`.
    #
    # A later failure (a full disk) is one line on standard error. The program runs on, and the recording is tried again
    # every minute. Inside a process that a command already records, it does nothing.
    #
    # @return [Integer, nil] the port of `control`
    # @raise [StateError] already recording
    # @raise [UsageError] a setting out of range, a folder that can't be written, a port in use, a token that others can
    #   read. Nothing is recorded then.
    #: (dir: String, ?control: Integer?, **untyped) -> Integer?
    def continuous(dir:, control: nil, **settings) = Collect::Continuous.begin(dir: dir, control: control, **settings)

    # Starts and stops recording when the process gets a signal. With {continuous}, the action applies to all processes
    # of the folder. Otherwise it begins or ends a file in `.pitwall/`.
    # @param action :toggle (default), :start, :stop or :rotate
    # @raise [UsageError] there is no such signal
    # @raise [CannotMeasure] the program handles the signal; Pitwall does not replace the handler
    #: (String, ?Symbol) -> void
    def on_signal(name, action = :toggle) = Collect::BySignal.install(name, action)

    # Whether this process is being recorded and not paused.
    #: () -> bool
    def recording? = session.recording?

    private

    def session = Collect::Session
  end
end
